"""Config providers: values from the environment, files and directories, as Kafka's ConfigTransformer puts them in."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror.config import Cluster, ConfigurationError, parse, resolve

CLUSTERS = "clusters = east\neast.bootstrap.servers = a:1\n"
PACKAGE = "org.apache.kafka.common.config.provider"


def east(lines: str) -> Cluster:
    return parse(f"{CLUSTERS}{lines}", "f").clusters["east"]


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAST_USER", "me")
    lines = f"config.providers = env\nconfig.providers.env.class = {PACKAGE}.EnvVarConfigProvider\n"
    assert east(f"{lines}east.client.id = ${{env:EAST_USER}}-${{env::EAST_USER}}").properties["client.id"] == "me-me"
    with pytest.raises(ConfigurationError, match=r"line 5: east\.client\.id: the environment variable NONE is not set"):
        east(f"{lines}east.client.id = ${{env:NONE}}")
    for allowed in ("WEST_.*", "EAST_", "USER"):
        with pytest.raises(ConfigurationError, match="not in allowlist"):
            pattern = f"config.providers.env.param.allowlist.pattern = {allowed}\n"
            east(f"{lines}{pattern}east.client.id = ${{env:EAST_USER}}")


def test_what_a_provider_gives_is_shown_as_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be a secret, whatever the key's name."""
    monkeypatch.setenv("PLANTED", "planted")
    text = (
        f"clusters = east, west\neast.bootstrap.servers = a:1\nwest.bootstrap.servers = b:1\neast->west.enabled = true\n"
        f"config.providers = env\nconfig.providers.env.class = {PACKAGE}.EnvVarConfigProvider\n"
        "topics = ${env:PLANTED}-.*\neast.client.id = ${env:PLANTED}\n"
    )
    configuration = parse(text, "f")
    assert configuration.flows["east->west"].topics == ("planted-.*",)
    rows = {row.key: row.value for row in resolve(configuration, "east->west")}
    assert (rows["topics"], rows["source.client.id"]) == ("${env:PLANTED}-.*", "${env:PLANTED}")
    with pytest.raises(ConfigurationError) as caught:
        parse(f"{text}tasks.max = ${{env:PLANTED}}\n", "f")
    assert "line 9: tasks.max: " in str(caught.value) and "planted" not in str(caught.value)


def test_what_a_provider_can_not_read_is_the_keys_error(tmp_path: Path) -> None:
    (tmp_path / "password").write_bytes(b"\xff\xfe")
    (tmp_path / "east.properties").write_text("user = \\uZZZZ\n")
    lines = "config.providers = file, dir, env\nconfig.providers.file.class = FileConfigProvider\n"
    lines += "config.providers.dir.class = DirectoryConfigProvider\nconfig.providers.env.class = EnvVarConfigProvider\n"
    lines += "config.providers.env.param.allowlist.pattern = [\n"
    for reference, said in (
        (f"dir:{tmp_path}:password", "can't read it: UnicodeDecodeError"),
        (f"file:{tmp_path}/east.properties:user", "can't read it: InvalidUEscapeError"),
        ("env:HOME", r"allowlist\.pattern: unterminated character set"),
    ):
        with pytest.raises(ConfigurationError, match=rf"line 8: east\.client\.id: .*{said}"):
            east(f"{lines}east.client.id = ${{{reference}}}")


def test_files_and_directories(tmp_path: Path) -> None:
    (tmp_path / "east.properties").write_text("user = me\n")
    (tmp_path / "password").write_text("secret")
    (tmp_path / "inside").mkdir()
    lines = (
        "config.providers = file, dir\n"
        f"config.providers.file.class = {PACKAGE}.FileConfigProvider\n"
        "config.providers.dir.class = DirectoryConfigProvider\n"
    )
    file = tmp_path / "east.properties"
    assert east(f"{lines}east.client.id = ${{file:{file}:user}}").properties["client.id"] == "me"
    found = east(f"{lines}east.ssl.key.password = ${{dir:{tmp_path}:password}}")
    assert found.properties["ssl.key.password"] == "secret"
    with pytest.raises(ConfigurationError, match=r"has no key nobody"):
        east(f"{lines}east.client.id = ${{file:{file}:nobody}}")
    with pytest.raises(ConfigurationError, match=r"No such file or directory: .*nothing"):
        east(f"{lines}east.client.id = ${{dir:{tmp_path}:nothing}}")
    for other in ("../password", str(tmp_path / "password"), "..", "inside/../password"):
        with pytest.raises(ConfigurationError, match=r"is no file's name in .*inside"):
            east(f"{lines}east.client.id = ${{dir:{tmp_path}/inside:{other}}}")
    lines += f"config.providers.dir.param.allowed.paths = {tmp_path}/inside\n"
    for path in (tmp_path, tmp_path / "inside" / ".."):
        with pytest.raises(ConfigurationError, match=r"is not in allowed\.paths"):
            east(f"{lines}east.client.id = ${{dir:{path}:password}}")


def test_a_provider_that_nobody_named_is_an_ordinary_value() -> None:
    assert east("east.client.id = ${env:PATH}").properties["client.id"] == "${env:PATH}"


def test_an_unknown_provider_class() -> None:
    with pytest.raises(ConfigurationError, match=r"line 4: config\.providers\.v\.class: must be one of .*EnvVar"):
        east("config.providers = v\nconfig.providers.v.class = com.example.Vault")
    with pytest.raises(ConfigurationError, match=r"line 3: config\.providers\.v\.class: must be one of"):
        east("config.providers = v")
