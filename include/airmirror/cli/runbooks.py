"""The commands of a runbook: ``plan``, ``run``, ``undo`` and ``rehearse``, made from what it declares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import By, Reason, Yes, console, telling
from airmirror.cli.plans import end, report_base
from airmirror.cli.report import KeyFile, signer_of
from airmirror.cli.tables import GOOD, line, print_all, print_json
from airmirror.report.files import write_document
from airmirror.runbooks.runbook import Order, OrderOption, Progress, Runbook, Verb

AnyRunbook = Runbook[Any, Any]
_REPORT = "A report, where something was done: PATH.html and PATH.json; by default here, named by kind, flow and time."
ReportFile = Annotated[Path | None, typer.Option("--write", help=_REPORT)]
NEEDED = Parameter.empty
PLANNED = "Exit status: 0 no line begins with `stop`, 1 one does, 2 bad input."
REHEARSED = "Exit status: 0 nothing would go wrong, 1 something would, and is listed, 2 bad input."
UNDONE = "Exit status: 0 it can be undone, or was, 1 it can't, 2 bad input."


def commands_of(runbook: AnyRunbook) -> typer.Typer:
    """The group of a runbook's commands; a verb that has no meaning for it is left out."""
    group = typer.Typer(no_args_is_help=True, help=runbook.summary, callback=lambda: None)
    plan_file = Annotated[
        Path | None,
        typer.Option("--write", help="A plan: write all of it as PATH.html and PATH.json, over what is there."),
    ]
    plan = f"{runbook.helps['plan']} {PLANNED}"
    _add(group, runbook, "plan", _plan, plan, write=(plan_file, None), key=(KeyFile, None))
    decides = {"reason": (Reason, NEEDED), "by": (By, NEEDED)}
    names = ", ".join(step.name for step in runbook.steps)
    usual = f"Only this step; again for more: {names}."
    if apart := [step.name for step in runbook.steps if step.apart]:
        usual += f" Default: all but {', '.join(apart)}."
    only = Annotated[list[str] | None, typer.Option("--step", help=usual)]
    report = {"write": (ReportFile, None), "key": (KeyFile, None)}
    _add(group, runbook, "run", _run, runbook.helps["run"], **decides, step=(only, None), **report, yes=(Yes, False))
    if runbook.rehearse is not None:
        _add(group, runbook, "rehearse", _rehearse, f"{runbook.helps['rehearse']} {REHEARSED}", **report)
    if runbook.undo is not None:
        _add(group, runbook, "undo", _undo, f"{runbook.undo.help} {UNDONE}", **decides, **report, yes=(Yes, False))
    return group


def _add(
    group: typer.Typer, runbook: AnyRunbook, verb: Verb, work: Callable[..., None], help: str, **shared: tuple[Any, Any]
) -> None:
    """Add the command of a verb: its options are the runbook's, and ``shared``, each with its annotation and default."""

    def command(given: FlowOptions, **values: Any) -> None:
        work(runbook, given, **values)

    own = [_parameter(each) for each in runbook.options(verb)]
    others = [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, (kind, default) in shared.items()
    ]
    first = Parameter("given", Parameter.POSITIONAL_OR_KEYWORD, annotation=FlowOptions)
    vars(command)["__signature__"] = Signature([first, *own, *others])
    group.command(verb, help=help)(flow_command(command))


def _parameter(given: OrderOption) -> Parameter:
    kind: Any = list[str] | None if given.type is tuple else given.type
    least, most = given.within
    flag = f"--{given.flag}/--no-{given.flag}" if given.setting else f"--{given.flag}"
    kind = kind | None if given.setting else kind
    annotation = Annotated[kind, typer.Option(flag, help=given.help, min=least, max=most)]
    default = NEEDED if given.is_required else None if given.type is tuple else given.default
    return Parameter(given.name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _order(runbook: AnyRunbook, values: dict[str, Any]) -> Order:
    many = {each.name for verb in runbook.helps for each in runbook.options(verb) if each.type is tuple}
    order: Order = runbook.order(
        **{name: tuple(value or ()) if name in many else value for name, value in values.items()}
    )
    return order


def _opened(runbook: AnyRunbook, given: FlowOptions, order: Order, *, shows: bool) -> AbstractContextManager[Any]:
    return runbook.opens(lambda name: given.opened(name, shows=shows), order)


def _plan(runbook: AnyRunbook, given: FlowOptions, write: Path | None, key: Path | None, **values: Any) -> None:
    if write is not None and not write.absolute().parent.is_dir():  # before anything is looked at
        raise typer.BadParameter(f"{write}: there is no such directory", param_hint="--write")
    signs = signer_of(key)
    with given.opened(shows=True) as opened, telling(console) as tell:
        found = runbook.plan(opened, _order(runbook, values), Progress(tell))
    end(found, given.as_json, [] if write is None else write_document(found, write, signs))


def _run(
    runbook: AnyRunbook,
    given: FlowOptions,
    step: list[str] | None,
    write: Path | None,
    key: Path | None,
    yes: bool,
    **values: Any,
) -> None:
    from airmirror.runbooks.run import chosen, is_whole, look, run

    order, only, signs = _order(runbook, values), tuple(step or ()), signer_of(key)
    said: list[dict[str, str]] = []

    def kept(text: str) -> None:
        said.append({"said": text})
        if not given.as_json:
            print_all(console, line("done", text, GOOD))

    made, left = None, tuple[str, ...]()
    with _opened(runbook, given, order, shows=not yes) as site, telling(console) as tell:
        flow = site.flow
        steps = [each.name for each in chosen(runbook, flow, order, only)]
        progress = Progress(tell, kept)
        if yes:
            ran = run(runbook, site, order, only, progress)
            over, left = ran.over, ran.left
            if not over and is_whole(runbook, flow, order, ran):
                made = runbook.outcome(site, order, ran)
        elif not (over := "" if only else runbook.over(site, order)):
            made = look(runbook, site, order, only, progress)
    if made is None:
        _end_steps(flow.name, over or f"Done: {', '.join(steps)}", left, said, given.as_json)
    elif yes:
        base = report_base(write, runbook.name, flow.name, made.made_ms)
        end(made, given.as_json, write_document(made, base, signs, made.headline), done=True)
    else:
        would = f"Nothing was written. With --yes it takes the steps {', '.join(steps)}."
        end(made, given.as_json, done=False, more=would)


def _end_steps(flow: str, ended: str, left: Sequence[str], said: list[dict[str, str]], as_json: bool) -> None:
    """Show the end of named steps, or that nothing was left to do; end with 1 where one of them has left something."""
    if as_json:
        print_json(console, {"flow": flow, "ended": ended, "left_something": list(left), "lines": said})
    else:
        print_all(console, f"{ended}.", *([f"Something is left by: {', '.join(left)}."] if left else []))
    if left:
        raise typer.Exit(1)


def _rehearse(runbook: AnyRunbook, given: FlowOptions, write: Path | None, key: Path | None, **values: Any) -> None:
    assert runbook.rehearse is not None
    signs = signer_of(key)
    with given.opened(shows=True) as opened, telling(console) as tell:
        made, name = runbook.rehearse(opened, _order(runbook, values), Progress(tell)), opened.flow.name
    base = report_base(write, "rehearsal", name, made.made_ms)
    end(made, given.as_json, write_document(made, base, signs, made.headline), done=True)


def _undo(
    runbook: AnyRunbook, given: FlowOptions, write: Path | None, key: Path | None, yes: bool, **values: Any
) -> None:
    from airmirror.runbooks.run import undo

    assert runbook.undo is not None
    order, signs = _order(runbook, values), signer_of(key)
    with _opened(runbook, given, order, shows=not yes) as site, telling(console) as tell:
        found = undo(runbook, site, order, Progress(tell)) if yes else runbook.undo.look(site, order)
        base = report_base(write, f"{runbook.name}-undo", site.flow.name, found.made_ms)
    files = write_document(found, base, signs, found.headline) if yes else []
    end(found, given.as_json, files, done=yes, more="" if yes else "Nothing was written: --yes does it.")
