"""Processes that compute together: how they find each other, agree, and notice that one is gone."""
