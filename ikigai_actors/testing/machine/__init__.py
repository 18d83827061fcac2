"""The state machines that generate programs for agents, and the invariants that must hold in each.

Its modules:

    machine, fleet                  `AgentTreeMachine` for one host, and `FleetMachine` for several
    rules                           operations on agents, for both machines
    street_rules                    deliveries from outside, and events for outside receivers
    question_rules                  questions to people
    upkeep_rules                    maintenance of the database: export, import, prune
    targeted_rules, fleet_targeted_rules    situations that arise too rarely by chance
    version_rules                   rules that give hosts other programs: versions, builds, clocks
    base, fleet_base, fixtures      the base of the rules: the world and its agents; their tool and models
    model, fleet_ledger             the acknowledged results, and checks that they hold after each rule and at rest
    commit_invariants, history_oracle, timer_oracle, merge_oracle, group_oracle, upkeep_oracle,
    word_oracle, hash_oracle, key_oracle, rule_oracle, tree_oracle, span_oracle, interrupt_oracle,
    stamp_oracle, former_oracle, version_oracle, delivery_oracle, arrival_oracle, question_oracle
                                    the invariants of commits
    memory_check                    checks that summaries and requests have all facts that they must have
"""
