"""Machines that judge this runtime alone: budgets with models that bill, and experiments.

budget_rules, budget_oracle, metered_provider   what is done under budgets, on one host and on several
spending_oracle                                 on whose account that is, and what it has cost
behaviour_rules, experiment_oracle              what is tried of histories
"""
