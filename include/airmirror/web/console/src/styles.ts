// Styles as sheets of the document: a policy without 'unsafe-inline' allows them.
import plots from "uplot/dist/uPlot.min.css";
import own from "./style.css";

export function adopt(): void {
  for (const text of [plots, own]) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    document.adoptedStyleSheets.push(sheet);
  }
}
