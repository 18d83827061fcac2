"""Writers of sessions in the formats of other programs, a module for each; `writer` has the common part."""
