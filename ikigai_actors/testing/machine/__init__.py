"""The state machine that makes up programs of agents, and the invariants that must hold of each.

Its modules:

    machine, fleet                  `AgentTreeMachine` for one host, and `FleetMachine` for several
    rules                           what is done to agents, by both
    street_rules                    deliveries from outside, and events for receivers there
    question_rules                  questions to people
    upkeep_rules                    what is done to a database beside its agents: export, import, prune
    targeted_rules, fleet_targeted_rules    what chance alone brings about too rarely
    version_rules                   other programs for hosts: versions, builds, clocks
    base, fleet_base, fixtures      the base of the rules: the world, its agents, their tool and models
    model, fleet_ledger             what was acknowledged, and whether it still holds, after each rule and at rest
    commit_invariants, history_oracle, timer_oracle, merge_oracle, group_oracle, upkeep_oracle,
    word_oracle, hash_oracle, key_oracle, rule_oracle, tree_oracle, span_oracle, interrupt_oracle,
    stamp_oracle, former_oracle, version_oracle, delivery_oracle, arrival_oracle, question_oracle
                                    what must hold of each commit
    memory_check                    what summaries and requests must have
"""
