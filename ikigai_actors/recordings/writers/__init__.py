"""Writers: sessions in the forms of other programs, a module for each. `writer` is what they have in common."""
