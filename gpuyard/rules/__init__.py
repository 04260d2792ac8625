"""Rules over a render: what they are, how they run, what they report. The rules themselves are content."""

from gpuyard.rules.rule import Context, Finding, Hit, Rule, Rules, Severity, Unjudged, Verdict

__all__ = ["Context", "Finding", "Hit", "Rule", "Rules", "Severity", "Unjudged", "Verdict"]
