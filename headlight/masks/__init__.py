"""Everything that can be done with a mask: say it, judge it, translate it, apply it."""
