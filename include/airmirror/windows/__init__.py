"""The driver of a window: claim, fence, positions, plan, results, compare, verified. Data flows one way."""
