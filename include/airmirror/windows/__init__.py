"""The driver of a window: lease, fence, positions, plan, results, compare, verified. Data flows one way."""
