"""Pictures of a result as places on axes: a headline, intervals by workload, and a roofline."""
