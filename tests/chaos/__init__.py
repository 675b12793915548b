"""The chaos test: windows run while producers write and everything else fails, by a plan that the seed fixes."""
