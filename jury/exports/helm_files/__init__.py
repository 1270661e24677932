"""The parts of an export to HELM: question, data, endpoints, and a plugin that asks as we do."""
