// Bundles the console twice, with hashed names: `host` for Airflow's page, which has React, and `frame` with its own.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const MOST = { host: { bytes: 200_000, gzip: 70_000 }, frame: { bytes: 450_000, gzip: 150_000 } };
// The names that Airflow's page puts on globalThis, as modules.
const SHARED = { react: "React", "react/jsx-runtime": "ReactJSXRuntime", "react-router-dom": "ReactRouterDOM" };
const fromHost = {
  name: "host",
  setup(builder) {
    builder.onResolve({ filter: /^(react|react\/jsx-runtime|react-router-dom)$/ }, ({ path }) => ({ path, namespace: "host" }));
    builder.onLoad({ filter: /.*/, namespace: "host" }, ({ path }) => ({
      contents: `module.exports = globalThis[${JSON.stringify(SHARED[path])}]`,
      loader: "js",
    }));
  },
};
const common = {
  bundle: true,
  minify: true,
  write: false,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  loader: { ".css": "text" },
  define: { "process.env.NODE_ENV": '"production"' },
  legalComments: "eof", // the licences of what is bundled
};

const here = (path) => new URL(path, import.meta.url).pathname;
const out = process.argv[2] ?? here("./dist");
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const manifest = {};
for (const [name, plugins] of Object.entries({ host: [fromHost], frame: [] })) {
  const { outputFiles } = await build({ ...common, plugins, entryPoints: [here(`./src/${name}.tsx`)] });
  keep(name, "js", outputFiles[0].contents);
}
for (const [name, color] of Object.entries({ icon: "#17181c", "icon-dark": "#f4f4f5" })) {
  keep(name, "svg", Buffer.from(readFileSync(here("./src/icon.svg"), "utf8").replaceAll("currentColor", color)));
}
writeFileSync(`${out}/manifest.json`, JSON.stringify(manifest)); // last: without it there is no console

function keep(name, ending, bytes) {
  const gzip = gzipSync(bytes).length;
  const file = `${name}-${createHash("sha256").update(bytes).digest("hex").slice(0, 12)}.${ending}`;
  if (bytes.length > MOST[name]?.bytes || gzip > MOST[name]?.gzip) {
    throw new Error(`${file}: ${bytes.length} bytes (${gzip} by gzip), more than ${JSON.stringify(MOST[name])}`);
  }
  writeFileSync(`${out}/${file}`, bytes);
  manifest[name] = file;
  console.log(`${file}: ${bytes.length} bytes, ${gzip} by gzip`);
}
