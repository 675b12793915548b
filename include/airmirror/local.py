"""``.local``: what commands download, start and remember. It lies in the checkout, else in the working directory."""

from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[2]
LOCAL = (_CHECKOUT if (_CHECKOUT / "pyproject.toml").is_file() else Path.cwd()) / ".local"
