"""Content-addressed cells: where the bench leaves its results and the gallery finds them. No torch here."""
