for op, rules in selector._rules.items():
    print(f"{op}: {len(rules)} rules")
# conv2d: 5 rules
# matmul: 4 rules
# ...
