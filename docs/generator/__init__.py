"""The reference: a page for each public function and class, made when the site is built."""
