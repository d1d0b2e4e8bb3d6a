"""The reference: a page for each public function and class, made when the site is built.

Sphinx lays pages out, resolves links, checks them and makes the search. Here stands what its
extensions (autosummary, napoleon, linkcode) do not do: find under which of several public names
something is known best, and group names by subject (``public``, ``subjects``); write docstrings as
pages that the tests read without Sphinx (``docstrings``, ``pages``, ``signatures``, ``tables``);
make examples complete (``examples``); link names in code font (``links``, ``names``);
draw and run examples (``gallery``, ``notebooks``); describe pages for search engines and the search
(``descriptions``, ``keywords``); and speed up and fit the theme (``sidebar``, ``steps``,
``wrapping``).
"""
