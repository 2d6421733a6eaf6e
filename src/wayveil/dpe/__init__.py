"""DPE exactly as published: align, embed, transform, perturb, synthesise, and back.

"A Privacy-Preserving Trajectory Synthesis Method Based on Vector Translation Invariance Supporting Traffic
Constraints" (Liu, Song, Wang). One module per step, each naming its equation; `method` combines them.

Privacy: not private, for any epsilon; docs/explanation/reproduction.md says why. To publish, use `wayveil.measure` and
`wayveil.synthesize`.
"""

NOT_PRIVATE = (
    "This reproduces a published method whose output is NOT differentially private, whatever epsilon says; "
    "use `wayveil measure` and `wayveil synthesize` to publish."
)
