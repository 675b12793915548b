"""Kafka's jars are complete, resolved once, and a failure shows what Ivy said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airmirror_local.jars import KAFKA_VERSION, JarsDiffer, JarsNotResolved, check, resolve


def test_the_jars_hold_brokers_tools_and_mirrormaker() -> None:
    names = {jar.name for jar in resolve().iterdir()}
    for module in ("kafka_2.13", "kafka-clients", "kafka-tools", "connect-mirror", "connect-runtime"):
        assert f"{module}-{KAFKA_VERSION}.jar" in names
    for library in ("snappy-java", "lz4-java", "zstd-jni", "slf4j-simple"):
        assert any(name.startswith(library) for name in names)


def test_what_is_there_is_not_resolved_again(tmp_path: Path) -> None:
    there = tmp_path / f"kafka-{KAFKA_VERSION}"
    there.mkdir()
    assert resolve(tmp_path) == there
    assert list(there.iterdir()) == []


def test_a_jar_that_is_not_the_released_one_is_not_used(tmp_path: Path) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    for jar in resolve().iterdir():
        os.link(jar, jars / jar.name)
    check(jars, "4.2.0")
    altered = jars / "kafka-clients-4.2.0.jar"
    content = altered.read_bytes()
    altered.unlink()  # the link, not the jar
    altered.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (jars / "slf4j-simple-1.7.36.jar").rename(jars / "more.jar")
    with pytest.raises(JarsDiffer, match=r"kafka-4\.2\.0\.sha256") as caught:
        check(jars, "4.2.0")
    assert caught.value.jars == ("kafka-clients-4.2.0.jar", "more.jar", "slf4j-simple-1.7.36.jar")
    with pytest.raises(JarsDiffer, match=r"kafka-2\.8\.2\.sha256"):
        check(jars, "2.8.2")  # the oldest that a test starts
    check(jars, "3.9.1")  # whose checksums nobody has noted


@pytest.mark.seconds
def test_a_failure_shows_what_ivy_said_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = tmp_path / "ivysettings.xml"
    nowhere.write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers><filesystem name="none">'
        f'<artifact pattern="{tmp_path}/none/[artifact]"/></filesystem></resolvers></ivysettings>'
    )
    monkeypatch.setenv("IVY_SETTINGS", str(nowhere))
    with pytest.raises(JarsNotResolved, match=r"(?s)kafka_2\.13.*not found.*IVY_SETTINGS"):
        resolve(tmp_path / "local")
    assert [path.name for path in (tmp_path / "local").iterdir()] in ([], ["ivy"])
