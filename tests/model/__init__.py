"""The protocol of lease, fence, slot, progress, mapping, verify and take-over as a state machine, explored to the end."""
