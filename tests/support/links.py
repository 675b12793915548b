"""The pages that a run's tasks lead to, asked for as a browser does from Airflow's own page."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urljoin

import httpx

from airmirror_local.airflow_client import AirflowClient


def links(client: AirflowClient, dag_id: str, run_id: str) -> dict[str, str]:
    """The text of our pages that a run's tasks lead to, by task and button; each link must open, a page with a log-in only."""
    found = {}
    for task in client.tasks(dag_id, run_id):
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task}/links"
        for name, link in client.request("GET", path)["extra_links"].items():
            if not link:
                continue
            answer = opened(client, link)
            assert answer.status_code == 200, (task, name, link, answer.text)
            if link.startswith("airmirror/"):  # another one is to a run, in Airflow's own pages
                assert opened(client, link, {}).status_code == 401
                found[f"{task}: {name}"] = answer.text
    return found


def opened(client: AirflowClient, link: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
    """What a link leads to for the client's user; with other ``headers``, for whoever sends them."""
    if headers is None:
        headers = {"Authorization": client._http.headers["Authorization"]}
    return httpx.get(urljoin(f"{client.url}/", link), headers=headers, trust_env=False, timeout=120)
