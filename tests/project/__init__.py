"""The project itself: its layers, exports, package, pages and benchmarks."""
