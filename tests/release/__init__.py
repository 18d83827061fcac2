"""A release: what must hold before its tag, its files, a machine without anything else, and the site.

    python -m tests.release check v0.1.0     whether version, changelog and schema are those of this tag
    python -m tests.release schema           keep the schema as that of the release
    python -m tests.release build dist       wheel and sdist, built twice and equal byte for byte
    python -m tests.release try dist/*.whl   the wheel in an environment of its own: pip check, imports, demo
    python -m tests.release site             the documentation as a site, in .site/html
    python -m tests.release llms             write docs/llms.txt

Nothing but the site needs more than Python and `build`.
"""
