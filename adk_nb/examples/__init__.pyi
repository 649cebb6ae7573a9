from adk_nb.examples.base_example_provider import BaseExampleProvider as BaseExampleProvider
from adk_nb.examples.example import Example as Example
