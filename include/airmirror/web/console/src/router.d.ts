// What is used of the router that Airflow's page has: its own types would bring in a package for three functions.
declare module "react-router-dom" {
  export function useHref(to: string): string;
  export function useLocation(): { pathname: string; search: string };
  export function useNavigate(): (to: string | { search: string }, options?: { replace?: boolean; preventScrollReset?: boolean }) => void | Promise<void>;
}
