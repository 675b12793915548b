// For the frame, with React of its own. Pages are loads of their own, which Airflow's address follows; the query is not.
import { useMemo, useState } from "react";
import { createRoot } from "react-dom/client";
import { App, Boundary } from "./app";
import { href } from "./api";
import { PlaceProvider, type Place } from "./place";
import { adopt } from "./styles";

const ROOT = "airmirror/console/frame";

// Of one origin with Airflow's page: its colours are followed.
function followColours(): void {
  const own = document.documentElement;
  const outer = window.parent.document.documentElement;
  const follow = () => own.classList.toggle("dark", outer === own ? matchMedia("(prefers-color-scheme: dark)").matches : outer.classList.contains("dark"));
  follow();
  if (outer !== own) new MutationObserver(follow).observe(outer, { attributes: true, attributeFilter: ["class"] });
}

/** Out of the frame, whose sandbox lets nothing of its own lead there: by a link of the page around it. */
function lead(to: string): void {
  const link = window.parent.document.createElement("a");
  link.href = to;
  link.click();
}

function Frame() {
  const [search, setSearch] = useState(location.search);
  const place = useMemo<Place>(() => {
    const root = new URL(href(ROOT)).pathname;
    const to = (path: string, query?: Record<string, string>) => href(`${ROOT}${path ? `/${path}` : ""}${query ? `?${new URLSearchParams(query)}` : ""}`);
    return {
      path: location.pathname.startsWith(root) ? location.pathname.slice(root.length).replace(/^\/|\/$/g, "") : "",
      query: new URLSearchParams(search),
      link: to,
      go: (path, query) => location.assign(to(path, query)),
      set: (changes) => {
        const query = new URLSearchParams(location.search);
        for (const [name, value] of Object.entries(changes)) value === undefined ? query.delete(name) : query.set(name, value);
        history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
        setSearch(location.search);
      },
      outer: (path) => ({
        href: href(path),
        onClick: (event) => {
          event.preventDefault();
          lead(href(path));
        },
      }),
    };
  }, [search]);
  const dagId = place.query.get("dag") ?? undefined;
  return (
    <Boundary>
      <PlaceProvider value={place}>
        <App dagId={place.path ? undefined : dagId} />
      </PlaceProvider>
    </Boundary>
  );
}

adopt();
followColours();
createRoot(document.getElementById("root")!).render(<Frame />);
