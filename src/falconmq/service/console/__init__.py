"""The web console: pages for people, drawn by the service itself; `console.app` has their paths."""
