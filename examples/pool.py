"""A supervised pool: four workers, twenty jobs. Each fourth job crashes its worker once; its restart does the job."""

from ikigai_actors import ActorSystem, FunctionProvider, Request


def main() -> None:
    tried = set[str]()

    def work(request: Request) -> str:
        job = request.messages[-1]["content"][0]["text"]
        if int(job) % 4 == 0 and job not in tried:
            tried.add(job)
            raise RuntimeError(f"job {job} is heavy")
        return f"{job} done"

    with ActorSystem.open(":memory:", FunctionProvider(work)) as system:
        system.root.supervise(intensity=20, period=60)
        workers = system.root.fork(count=4)
        jobs = [workers[number % 4].prompt(str(number)) for number in range(20)]
        print([job.result(timeout=60).text for job in jobs], sum(each.statistics().restarts for each in workers))


if __name__ == "__main__":
    main()
