"""Adam against algorithm 1 of Kingma and Ba (2015), written out in double precision."""

from __future__ import annotations

import torch

from model.learning.adam import BETAS, EPSILON, Adam


def test_its_steps_are_those_of_the_algorithm():
    generator = torch.Generator().manual_seed(0)
    parameters = [torch.randn(shape, generator=generator, requires_grad=True) for shape in ((3, 2), (4,))]
    expected = [parameter.detach().double() for parameter in parameters]
    means, squares = ([torch.zeros_like(value) for value in expected] for _ in range(2))
    optimizer = Adam(parameters)
    for step, learning_rate in enumerate((0.1, 0.05, 0.2), start=1):
        optimizer.step(sum(parameter.pow(3).sum() for parameter in parameters), learning_rate)
        for i, value in enumerate(expected):
            gradient = 3 * value**2
            means[i] = BETAS[0] * means[i] + (1 - BETAS[0]) * gradient
            squares[i] = BETAS[1] * squares[i] + (1 - BETAS[1]) * gradient**2
            mean, square = means[i] / (1 - BETAS[0] ** step), squares[i] / (1 - BETAS[1] ** step)
            expected[i] = value - learning_rate * mean / (square.sqrt() + EPSILON)
    for parameter, value in zip(parameters, expected, strict=True):
        assert torch.allclose(parameter.double(), value, rtol=1e-5)
