"""An assistant with mail and a timer. Run it again: it has its history, its mail and its timer."""

import sys

from ikigai_actors import ActorSystem, Mailed


def main(database: str = "assistant.db") -> None:
    with ActorSystem.open(database, provider="offline") as system:
        ada = system.root.fork("You keep my diary.", name="ada", exist_ok=True)
        if not ada.timers():
            ada.remind("plan the day", every="0 9 * * 1-5", zone="Europe/Berlin", prompt=True)
        with system.subscribe(lambda event: print("new mail:", event.mail.body), only=(Mailed,)):
            system.send(ada, "The fair begins at ten.")
        print(len(ada.read_mail()), "mail,", len(ada.timers()), "timer")
        print(ada.prompt("What is new?").result(timeout=60).text)


if __name__ == "__main__":
    main(*sys.argv[1:])
