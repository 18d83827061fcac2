"""Mutants of accounts at remote MCP servers.

nice python -m tests.mutants --accounts
"""

from tests.mutants import Mutant

_ACCOUNTS = "tests/doors/test_accounts.py"

ACCOUNT_MUTANTS = (
    Mutant(
        "the issuer that sends a person back is not looked at before the code is redeemed",
        "system/accounts.py",
        "        check_iss(iss, issuer.issuer, always=issuer.sends_iss)\n",
        "",
        test=_ACCOUNTS,
        tier="standard",
    ),
    Mutant(
        "a sealed row opens in any place",
        "records/accounts.py",
        'return f"account\\n{server}\\n{subject}"',
        'return "account"',
        test=_ACCOUNTS,
        tier="standard",
    ),
    Mutant(
        "a renewal is claimed without a look at who has it",
        "store/queries.sql",
        "   AND (renewing_until IS NULL OR renewing_until <= :now)\nRETURNING version",
        "   AND :now > 0\nRETURNING version",
        test=_ACCOUNTS,
        tier="standard",
    ),
    Mutant(
        "a flow is not taken away",
        "store/queries.sql",
        "DELETE FROM account_flows WHERE state = :state RETURNING question, until, sealed",
        "SELECT question, until, sealed FROM account_flows WHERE state = :state",
        test=_ACCOUNTS,
        tier="thorough",
    ),
    Mutant(
        "a flow goes on in another browser",
        "reach/account_flows.py",
        'if not state or f"{_name(state)}={state}" not in',
        'if not state and f"{_name(state)}={state}" not in',
        test=_ACCOUNTS,
        tier="standard",
    ),
    Mutant(
        "the text of an error has the answer of the authorization server",
        "system/accounts.py",
        '    return f"The authorization server {what}: {answer.status}',
        '    return f"The authorization server {what}: {answer.body!r} {answer.status}',
        test=_ACCOUNTS,
        tier="standard",
    ),
    Mutant(
        "a renewal that fails keeps its claim",
        "system/accounts.py",
        "            await self._writes(FreeRenewal(row.server, row.subject, row.version))\n",
        "",
        test=_ACCOUNTS,
        tier="standard",
    ),
    Mutant(
        "a proxy's refusal ends an account",
        "system/accounts.py",
        "    return bool(code) or answer.status in (400, 401)",
        "    return answer.status != 200",
        test=_ACCOUNTS,
        tier="standard",
    ),
    Mutant(
        "an account that is removed in its renewal is used",
        "system/accounts.py",
        "            await self._revoke(kept, after)  # the account was removed meanwhile, or connected anew\n"
        "            return await self.token(row.server, row.subject)\n",
        "            pass\n",
        test=_ACCOUNTS,
        tier="standard",
    ),
    Mutant(
        "an account answers the question of its link alone",
        "records/accounts.py",
        "if row.id == asked or (row.kind == CONNECT and _asks_for(tx, row, account))",
        "if row.id == asked",
        test=_ACCOUNTS,
        tier="standard",
    ),
)
