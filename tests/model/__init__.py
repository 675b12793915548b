"""The protocol of claim, fence, slot, progress, segment, verify and take-over as a state machine, explored to the end."""
