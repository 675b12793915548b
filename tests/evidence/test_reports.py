"""A report that was altered, or removed from its chain, is found out; keys that are none are told."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from html import escape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from airmirror.cli.main import app
from airmirror.report import check as checking
from airmirror.report import files as reports
from airmirror.report.canonical import canonical, parsed
from airmirror.report.check import check
from airmirror.report.document import Document, Finding, titled
from airmirror.report.errors import BadKey, NoReport, ReportNotWritten
from airmirror.report.files import signature_of, write_document, write_evidence
from airmirror.report.page import embedded_json
from airmirror.report.signing import Signer, public_key, signer
from support.examples import examples

EVIL = "<img src=x onerror=alert(1)>&amp;</pre>"


def a_report(number: int = 1) -> Document:
    return Document(
        kind="flow",
        about="Flow a->b",
        headline="1 record was copied.",
        is_good=True,
        asked={"flow": EVIL, "from_ms": None},
        numbers={"records copied": 1},
        not_known=(EVIL,),
        sections=titled({"partitions": [{"topic": EVIL, "copied": 2**62, "source": [[0, 1]]}]}),
        made_ms=number,
    )


def pem(file: Path, key: Any = None, encryption: KeySerializationEncryption | None = None) -> Path:
    key = key or ed25519.Ed25519PrivateKey.generate()
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption()))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    file.with_suffix(".pub").write_bytes(public)
    return file


def written(directory: Path, name: str, key: Signer | None, number: int = 1) -> Path:
    directory.mkdir(exist_ok=True)
    write_evidence(a_report(number), directory / name, key)
    return directory / f"{name}.json"


def is_sound(file: Path, key: str = "") -> bool:
    try:
        return not check(file, key).wrong
    except NoReport:
        return False


def test_an_altered_byte_of_any_file_is_found(tmp_path: Path) -> None:
    key = signer(pem(tmp_path / "key.pem"))
    file = written(tmp_path, "one", key)
    assert is_sound(file) and is_sound(file, key.public_key)
    assert embedded_json(file.with_suffix(".html").read_text()) == file.read_bytes()
    page = file.with_suffix(".html")
    for each in (file, signature_of(file), page, signature_of(page)):
        whole = each.read_bytes()
        for at in range(
            0, len(whole), 7 if each.suffix == ".html" else 1
        ):  # of the page, its JSON among it, every seventh
            each.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            assert not is_sound(file), (each.name, at)
        for other in (whole[:-1], whole + b" ", b""):
            each.write_bytes(other)
            assert not is_sound(file), each.name
        each.write_bytes(whole)
    assert is_sound(file)


def test_a_page_of_another_version_is_the_one_that_was_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can't be made again: what a release changes is no alteration."""
    key = signer(pem(tmp_path / "key.pem"))
    file, other = (written(tmp_path / name, "one", key, number) for number, name in enumerate("ab"))
    monkeypatch.setattr(checking, "__version__", "9.9.9")
    monkeypatch.setattr(checking, "page", lambda content: "another page")
    assert is_sound(file, key.public_key) and not check(file, key.public_key).notes
    page = file.with_suffix(".html")
    whole = page.read_bytes()
    page.write_bytes(whole.replace(b"1 record was copied", b"9 records were lost", 1))
    assert any("was altered" in each for each in check(file).wrong)
    page.write_bytes(other.with_suffix(".html").read_bytes())
    signature_of(page).write_bytes(signature_of(other.with_suffix(".html")).read_bytes())
    assert any("the JSON in its page" in each for each in check(file).wrong), "the signer's page of another report"


def test_one_report_in_two_places_of_a_chain_is_wrong(tmp_path: Path) -> None:
    key = signer(pem(tmp_path / "key.pem"))
    october, november = (written(tmp_path, name, key, number) for number, name in enumerate(("october", "november")))
    assert is_sound(november)
    for suffix in (".json", ".json.sig", ".html", ".html.sig"):
        (tmp_path / f"november{suffix}").write_bytes((tmp_path / f"october{suffix}").read_bytes())
    for file in (october, november):
        assert any("november.json and october.json are one and the same" in each for each in check(file).wrong)


def test_a_report_that_somebody_else_has_signed_anew(tmp_path: Path) -> None:
    ours, theirs = signer(pem(tmp_path / "ours.pem")), signer(pem(tmp_path / "theirs.pem"))
    file = written(tmp_path, "one", theirs)
    assert is_sound(file) and any("who signed is not known" in note for note in check(file).notes)
    assert not is_sound(file, ours.public_key)
    signature_of(file).write_bytes(ours.sign(file.read_bytes()))
    assert not is_sound(file) and not is_sound(file, ours.public_key)


def test_without_a_signature_nothing_is_sound(tmp_path: Path) -> None:
    assert "not signed" in check(written(tmp_path, "one", None)).wrong[0]
    file = written(tmp_path, "two", signer(pem(tmp_path / "key.pem")))
    signature_of(file).unlink()
    assert "signature" in check(file).wrong[0]


@pytest.mark.parametrize("gone", [0, 1])
def test_a_removed_or_altered_report_is_missed(gone: int, tmp_path: Path) -> None:
    key = signer(pem(tmp_path / "key.pem"))
    files = [written(tmp_path, name, key, number) for number, name in enumerate(("z", "m", "a"))]
    assert check(files[2]).chain == (files[2], files[1], files[0]) and is_sound(files[2])
    content = files[gone].read_bytes()
    files[gone].unlink()
    assert "removed or altered" in check(files[2]).wrong[0]
    files[gone].write_bytes(content.replace(b"1 record", b"9 record"))
    assert "removed or altered" in check(files[2]).wrong[0]
    files[gone].write_bytes(content)
    assert is_sound(files[2])
    write_evidence(a_report(9), tmp_path / "fork", key, after=files[0])
    assert any("name the same report" in each for each in check(files[2]).wrong)


def test_a_check_reads_each_report_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A year of daily reports of a megabyte: not all of them again for every one."""
    files = [written(tmp_path, f"day-{number}", None, number) for number in range(8)]
    digests: list[int] = []
    monkeypatch.setattr(
        reports, "hashlib", SimpleNamespace(sha256=lambda data: digests.append(len(data)) or sha256(data))
    )
    assert check(files[-1]).chain == tuple(reversed(files)) and len(digests) <= len(files) + 1


@pytest.mark.parametrize(
    ("time_ms", "delay_ms", "error"), [(0, 10**400, "OverflowError"), (None, 1, "TypeError"), ("x", 1, "TypeError")]
)
def test_what_no_page_can_show_is_told(tmp_path: Path, time_ms: object, delay_ms: int, error: str) -> None:
    key = signer(pem(tmp_path / "key.pem"))
    file = written(tmp_path, "one", key)
    rows = [{"time_ms": time_ms, "records": 1, "delay_ms": delay_ms} for _ in range(2)]
    shown = {"contents": [{"section": "progress", "title": "", "about": ""}], "sections": {"progress": rows}}
    data = canonical(parsed(file.read_bytes()) | shown)
    page = f'<pre id="report">{escape(data.decode(), quote=False)}</pre>'.encode()
    for each, content in ((file, data), (file.with_suffix(".html"), page)):
        each.write_bytes(content)
        signature_of(each).write_bytes(key.sign(content))
    assert f"no page can be made of it: {error}" in check(file).wrong[0]


def test_nothing_is_written_over(tmp_path: Path) -> None:
    file = written(tmp_path, "one", None)
    before = file.read_bytes()
    for base in (tmp_path / "one", tmp_path / "one.json", tmp_path / "no" / "such"):
        with pytest.raises(ReportNotWritten):
            write_evidence(a_report(2), base)
    (tmp_path / "two.json").touch()
    with pytest.raises(ReportNotWritten):
        write_evidence(a_report(2), tmp_path / "two.html")
    assert file.read_bytes() == before and not (tmp_path / "two.html").exists()


def test_a_plan_is_written_over_signed_and_found_altered(tmp_path: Path) -> None:
    """A plan, or the report of a procedure, stands alone: what was there before is none of its chain."""
    key, base = signer(pem(tmp_path / "key.pem")), tmp_path / "new" / "plan"
    stop = Finding("stop", EVIL, "seen", "`airmirror hold list`")
    plan = replace(a_report(), findings=(stop,), by="ada", reason=EVIL)
    for number in (1, 2):
        page, told, *signatures = write_document(replace(plan, made_ms=number), base, key)
    assert [each.suffix for each in signatures] == [".sig", ".sig"] and (page.name, told.name) == (
        "plan.html",
        "plan.json",
    )
    assert is_sound(told, key.public_key) and check(told).chain == (told,)
    assert 'tr class="bad"' in page.read_text() and "<img" not in page.read_text() and ", by ada: " in page.read_text()
    page.write_text(page.read_text().replace("stop", "ok"))
    assert "was altered" in check(told).wrong[0]
    write_document(plan, base)
    assert not any(each.exists() for each in signatures), "they were of other contents"


def test_a_plan_is_no_part_of_the_chain_of_evidence_beside_it(tmp_path: Path) -> None:
    key = signer(pem(tmp_path / "key.pem"))
    write_document(a_report(9), tmp_path / "plan", key)
    file = written(tmp_path, "november", key)
    write_document(a_report(10), tmp_path / "plan", key)
    assert is_sound(file) and check(file).chain == (file,)


def test_what_was_done_is_told_where_its_report_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ReportNotWritten, match=r"^It is done\. But the report can't be written"):
        write_document(a_report(), tmp_path / "file" / "report", done="It is done.")


def test_keys_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = pem(tmp_path / "locked.pem", encryption=BestAvailableEncryption(b"secret-word"))
    (tmp_path / "noise.pem").write_bytes(b"\x00noise")
    other = x25519.X25519PrivateKey.generate()
    for file in (locked, tmp_path / "noise.pem", tmp_path / "none.pem", tmp_path, pem(tmp_path / "x.pem", other)):
        with pytest.raises(BadKey, match="openssl genpkey") as failed:
            signer(file)
        assert "noise" not in failed.value.reason
    with pytest.raises(BadKey) as failed:
        signer(locked, "wrong-word")
    assert "word" not in str(failed.value).replace("password", "")
    assert signer(locked, "secret-word").public_key == public_key(tmp_path / "locked.pub")
    for file in (locked, tmp_path / "x.pub"):
        with pytest.raises(BadKey):
            public_key(file)


def test_the_command_tells_by_its_exit_status(tmp_path: Path) -> None:
    def command(*words: object) -> Result:
        return CliRunner().invoke(app, ["report", "check", *map(str, words)])

    file = written(tmp_path, "one", signer(pem(tmp_path / "key.pem")))
    sound = command(file, "--public-key", tmp_path / "key.pub")
    assert sound.exit_code == 0 and "sound" in sound.stdout and "note" not in sound.stdout
    assert "Flow a->b, made 1970-01-01 00:00:00 UTC: 1 record was copied." in sound.stdout
    pem(tmp_path / "other.pem")
    assert command(file, "--public-key", tmp_path / "other.pub").exit_code == 1
    assert command(file, "--public-key", tmp_path / "key.pem").exit_code == 2
    for none in (tmp_path / "none.json", tmp_path / "key.pem", tmp_path):
        assert command(none).exit_code == 2
    file.write_bytes(file.read_bytes().replace(b"1 record", b"2 record"))
    assert command(file).exit_code == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="ascii")), inner),
    max_leaves=20,
)


@examples(30)
@given(JSON)
def test_one_content_has_one_form(value: Any) -> None:
    assert parsed(canonical(value)) == value


@pytest.mark.parametrize(
    "data",
    [b'{"b":1,"a":1}', b'{"a": 1}', b'{"a":1,"a":1}', b"1.0", b"1e3", b"NaN", b'"\\u0041"', b'"\xff"', b"[" * 100_000],
)
def test_other_forms_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        parsed(data)
