// Where the viewer is: pages lie in the path, everything else in the query. Airflow's page and the frame each bring their own
// way to navigate.
import { createContext, useContext } from "react";

export interface Place {
  path: string; // of the page, without slashes around it: "", "flow/replicate.east.west", …
  query: URLSearchParams;
  link(path: string, query?: Record<string, string>): string; // an address for an <a>
  go(path: string, query?: Record<string, string>): void;
  set(query: Record<string, string | undefined>): void; // changes the query, not the page
  outer(path: string): { href: string; onClick?: (event: { preventDefault(): void }) => void }; // to a page of Airflow's own
}

const Context = createContext<Place | undefined>(undefined);
export const PlaceProvider = Context.Provider;

export function usePlace(): Place {
  const place = useContext(Context);
  if (!place) throw new Error("there is no place here");
  return place;
}

/** A page's path of its parts, each written as one. */
export const pathOf = (...parts: (string | number)[]): string => parts.map((part) => encodeURIComponent(part)).join("/");

export const partsOf = (path: string): string[] =>
  path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
