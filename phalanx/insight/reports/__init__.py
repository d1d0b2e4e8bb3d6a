"""Reports, and the forms in which a terminal, a browser and a program get them."""
