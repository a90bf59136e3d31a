//! Act five: a colleague takes over the keyboard and writes Chinese.

use crate::sample::agent::Agent;
use crate::sample::output::{Shell, cargo};
use crate::sample::pictures;

pub(super) fn play(agent: &mut Agent) {
    agent.pause(64);
    agent.user(
        "我是文博，接着米拉的会话继续。Python 客户端解析不了 LEASES 返回的截止时间：它把毫秒当成了秒，结果全都落在公元五万年以后。请先看一下协议文档有没有写清楚单位，再看服务端实际发的是什么。请用中文回答，简短一点。",
    );
    agent
        .step()
        .think("文博 wants Chinese, short. Check docs/protocol.md for the unit, then leases.rs for what is sent.")
        .say("先看文档和实现。")
        .read("docs/protocol.md")
        .read("src/commands/leases.rs")
        .grep("deadline", "src/commands")
        .go();
    agent.answer(
        "文档写了：所有时间都是自 Unix 纪元起的**毫秒**（u64，小端）。服务端发的也是毫秒，`leases.rs` 先发服务器时间，再发每个租约的截止时间。\n\n所以错在客户端。另外客户端不应该拿截止时间跟自己的时钟比，应该用“截止时间减去同一应答里的服务器时间”。",
    );
    agent.user("明白了。那在文档里加一个例子吧，一个真实的应答，字节对字节。字节请从测试里拿，不要手写。顺便看看这张图里三条线各是什么，图在 docs/lease-timeline.png。");
    let dumped = Shell::ok(
        "running 1 test\nLEASES answer, 41 bytes:\n00000000  20 00 00 00 00 07 00 00  00 3c 95 40 de 9c 01 00\n00000010  00 01 00 00 00 2a 00 00  00 00 00 00 00 03 00 00\n00000020  00 9c 7f 41 de 9c 01 00  00\ntest commands::leases::tests::dump_an_answer ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 71 filtered out; finished in 0.00s\n",
    );
    agent
        .step()
        .say("字节从一个临时测试里打印出来。")
        .bash("cargo test --lib dump_an_answer -- --nocapture 2>&1", dumped)
        .look("docs/lease-timeline.png", pictures::TIMELINE)
        .go();
    agent
        .step()
        .think("The picture: three horizontal lines crossed by two vertical ones. Lines: worker A, sweeper, worker B; verticals: lease end and the second lease.")
        .edit(
            "docs/protocol.md",
            "## Order\n",
            "## An example: `LEASES`\n\nOne lease is out: job 42, worker 3. The server's time comes first; the lease ends 60,000 ms after it.\n\n```\n20 00 00 00  00  07 00 00 00         length 32, OK, request 7\n3c 95 40 de 9c 01 00 00              the server's time, in milliseconds\n01 00 00 00                          one lease\n2a 00 00 00 00 00 00 00              job 42\n03 00 00 00                          worker 3\n9c 7f 41 de 9c 01 00 00              its deadline, in milliseconds\n```\n\nWhat counts is the difference of the two times, 60,000. Do not compare either with the client's clock.\n\n## Order\n",
        )
        .go();
    agent.answer(
        "例子已加到 `docs/protocol.md`，字节来自测试输出。\n\n图里三条横线：上面是第一个 worker，中间是 sweeper，下面是第二个 worker；两条竖线是第一次租约到期和第二次租出。它画的正是今天修掉的那个竞态。",
    );
    agent.user("很好。最后一个问题：EXTEND 如果把租约改短，会不会也触发同样的问题？");
    agent.step().read("src/commands/extend.rs").read("src/lease.rs").go();
    agent
        .step()
        .think("extend removes the old (deadline, job) and inserts the new. A stale list from before the extension: the sweeper took (job, gen 1) when it was due; but extend refuses a lease that has run out (GONE), so no. Shortening: the new deadline is earlier; sweeper is notified. Fine. What about a lease extended AFTER the list was made? Not possible, same reason. But: clock steps back between the list and extend: now < deadline again, extend succeeds, then the sweeper expires it with the same generation. Rare but real: NTP step. Fix: expire() checks the deadline again under its own lock.")
        .say("有一种情况：列表取出之后系统时钟被 NTP 往回拨，EXTEND 又成功了，而 generation 没变，sweeper 仍会收回它。在 `expire` 里再查一次截止时间就可以堵住。写个测试证明一下。")
        .edit(
            "src/lease.rs",
            "    /// Takes a lease out of the table, if it is still that one.\n",
            "    /// When that lease of the job runs out, if it is still out.\n    pub fn deadline(&self, job: JobId, generation: u32) -> Option<u64> {\n        self.by_job.get(&job).filter(|l| l.generation == generation).map(|l| l.deadline)\n    }\n\n    /// Takes a lease out of the table, if it is still that one.\n",
        )
        .edit(
            "src/queue.rs",
            "        if self.leases.forget(id, generation).is_none() {\n            return Ok(false);\n        }\n        self.store.append(&Record::Expire(id))?;",
            "        // The clock may have been set back since the list was made, and the lease lengthened.\n        if self.leases.deadline(id, generation).is_none_or(|deadline| deadline > now) {\n            return Ok(false);\n        }\n        self.leases.forget(id, generation);\n        self.store.append(&Record::Expire(id))?;",
        )
        .go();
    let broken = cargo::test(
        &agent.ws,
        "tests/redelivery",
        &[(
            "a_lost_connection_gives_its_jobs_back",
            "tests/redelivery.rs:55:9:\nassertion failed: other.pull_wait(\"mail\", 60_000).await.is_some()",
        )],
        &mut agent.random,
    );
    agent.step().bash("cargo test 2>&1", broken).go();
    agent
        .step()
        .think("drop_worker uses expire() for leases that have NOT run out: my new check refuses them. It needs a way of its own.")
        .say("`drop_worker` 也用 `expire`，而那些租约还没到期，被我的新检查挡住了。给它单独一条路。")
        .edit(
            "src/queue.rs",
            "        for (id, generation) in held {\n            self.expire(id, generation, now)?;\n        }",
            "        for (id, generation) in held {\n            self.give_back(id, generation, now)?;\n        }",
        )
        .edit(
            "src/queue.rs",
            "        self.leases.forget(id, generation);\n        self.store.append(&Record::Expire(id))?;\n        self.counters.expired += 1;\n        self.requeue(id, now);\n        Ok(true)\n    }",
            "        self.give_back(id, generation, now)?;\n        self.counters.expired += 1;\n        Ok(true)\n    }\n\n    /// Ends a lease, run out or not, and puts its job back.\n    fn give_back(&mut self, id: JobId, generation: u32, now: u64) -> Result<(), QueueError> {\n        if self.leases.forget(id, generation).is_some() {\n            self.store.append(&Record::Expire(id))?;\n            self.requeue(id, now);\n        }\n        Ok(())\n    }",
        )
        .go();
    let passed = cargo::test(&agent.ws, "", &[], &mut agent.random);
    agent.step().bash("cargo test 2>&1", passed).go();
    agent.answer(
        "改好了，全部通过。`expire` 现在会再查一次截止时间；断开连接走 `give_back`，不受影响，也不再算进 `expired` 计数（以前算错了，这点请告诉米拉）。",
    );
    agent.user("好的，谢谢！我把键盘还给米拉。");
    agent.answer("好。交接要点：文档例子、`expire` 的二次检查、`expired` 计数不再包含断线。");
}
