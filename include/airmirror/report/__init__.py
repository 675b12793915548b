"""Documents: what people and programs are shown of a plan, an outcome or a proof, as Markdown, HTML and JSON, signed."""
