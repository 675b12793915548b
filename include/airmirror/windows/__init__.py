"""The engine: claim, fence, progress, plan, slots, compare, verified. Data flows one way."""
