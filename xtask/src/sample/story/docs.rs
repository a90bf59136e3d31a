//! Act six: what users read.

use std::fmt::Write;

use crate::sample::agent::Agent;
use crate::sample::commands::{COMMANDS, Command};
use crate::sample::output::{Shell, cargo, git};

pub(super) fn play(agent: &mut Agent) {
    agent.user(
        "Mira again. I read what Wenbo did, good, keep it. But the counter: that is a change users notice, so it goes into the changelog. Then write one page per command under docs/commands/, from the doc comments, for people who write clients. English, plain, no marketing.",
    );
    agent
        .step()
        .think("Changelog first. Then pages: name, code, body, answer, when it fails. Take the facts from the source, not from memory.")
        .read("CHANGELOG.md")
        .read("src/frame.rs")
        .grep("const CODE", "src/commands")
        .go();
    agent
        .step()
        .edit(
            "CHANGELOG.md",
            "## Unreleased\n",
            "## Unreleased\n\n- A job is delivered again exactly once for each lease that runs out. Before, a `PULL` that met the sweeper could end a lease\n  that was still good. (#131)\n- `STATS`: `expired` no longer counts the leases of lost connections.\n- The system clock may be set back without a lengthened lease being taken away.\n",
        )
        .go();
    for (at, group) in COMMANDS.chunks(3).enumerate() {
        let first = at as u8 * 3 + 1;
        let mut step = agent.step();
        for (code, command) in (first..).zip(group) {
            step = step.write(&format!("docs/commands/{}.md", command.name), &page(code, command));
        }
        step.go();
        if at == 1 {
            agent.user("stop. the pages say \"returns\" for answers. the protocol says \"answers\". use its words, also in what you wrote already");
            for command in &COMMANDS[..6] {
                let path = format!("docs/commands/{}.md", command.name);
                agent.ws.replace_all(&path, "Returns", "Answers");
            }
            agent
                .step()
                .say("Right. Changing the six that are written and using it in the rest.")
                .bash("sed -i 's/Returns/Answers/g' docs/commands/*.md && grep -c Answers docs/commands/*.md", Shell::ok("docs/commands/ack.md:1\ndocs/commands/extend.md:1\ndocs/commands/hello.md:1\ndocs/commands/nack.md:1\ndocs/commands/pull.md:1\ndocs/commands/push.md:1\n"))
                .go();
        }
    }
    let diff = git::diff(&agent.ws, "docs/");
    agent
        .step()
        .say("All eighteen pages and the example, to look over:")
        .bash("git diff docs/; git add -N docs/commands; git diff docs/commands", Shell::ok(diff))
        .go();
    agent.answer("Eighteen pages under `docs/commands/`, the changelog, and the example of Wenbo in `docs/protocol.md`. Every fact is from the source; `GONE` stands only where a lease is checked.");
    agent.user("Check them against the code once more, field by field. I don't trust pages that nobody compared.");
    for group in COMMANDS.chunks(2) {
        let mut step = agent.step();
        for Command { name, .. } in group {
            step = step
                .read(&format!("docs/commands/{name}.md"))
                .read(&format!("src/commands/{name}.rs"));
        }
        step.go();
    }
    agent
        .step()
        .think("purge: when the number is off by more than a tenth it answers BAD_FRAME and carries the true number. My page does not say that the body carries the number. dead: limit of 1000 is in the code and in the page. push: the payload field is what is left of the body; the page does not list it.")
        .say("Two gaps: `push` does not list the payload, `purge` does not say that a refusal carries the true number.")
        .edit("docs/commands/push.md", "\n## Fails with\n", "\nWhat is left of the body is the payload.\n\n## Fails with\n")
        .edit("docs/commands/purge.md", "\n## Fails with\n", "\nIf the number is off by more than a tenth, the answer is BAD_FRAME and carries the true number (u32).\n\n## Fails with\n")
        .go();
    let passed = cargo::test(&agent.ws, "", &[], &mut agent.random);
    let clippy = cargo::clippy_clean(&mut agent.random);
    agent
        .step()
        .bash("cargo test 2>&1", passed)
        .bash("cargo clippy --all-targets -- -D warnings 2>&1", clippy)
        .go();
    let stat = git::stat(&agent.ws);
    let diff = git::diff(&agent.ws, "");
    agent
        .step()
        .say("Green. The whole change once more before I commit it:")
        .bash("git diff", Shell::ok(capped(&diff)))
        .go();
    agent
        .step()
        .bash("git add -A src tests docs CHANGELOG.md && git diff --cached --stat", Shell::ok(stat))
        .bash(
            "git commit -q -F - <<'EOF'\nEnd a lease only if it is still the one that ran out\n\nThe sweeper worked off a list that PULL had made stale, and took leases away that had just\nbeen granted. Leases are now named by job and generation, and time comes in as an argument.\nEOF\ngit log --oneline | head -3",
            Shell::ok("9c41e07 End a lease only if it is still the one that ran out\n1f0b2aa Report the age of the oldest ready job\n77d3c95 Cut a torn record off instead of refusing the segment\n"),
        )
        .go();
    agent.ws.commit();
    agent.answer("Both gaps filled, all green, committed as 9c41e07. Not pushed.");
    agent.bash(
        "git push origin HEAD:fix/redelivery",
        "To git.example.org:mira/tidemark\n * [new branch]      HEAD -> fix/redelivery\n",
        true,
    );
}

/// The end of a long output, as pi's `bash` shows it.
fn capped(text: &str) -> String {
    const MOST: usize = 50 * 1024;
    let lines: Vec<_> = text.lines().collect();
    let mut size = 0;
    let shown = lines.iter().rev().take_while(|line| {
        size += line.len() + 1;
        size <= MOST
    });
    let first = lines.len() - shown.count();
    if first == 0 {
        return text.to_owned();
    }
    format!(
        "{}\n\n[Showing lines {}-{} of {} (50.0KB limit). Full output: /tmp/pi-bash-5d1c0e7a.log]",
        lines[first..].join("\n"),
        first + 1,
        lines.len(),
        lines.len()
    )
}

fn page(code: u8, command: &Command) -> String {
    let mut out = format!(
        "# {}\n\n{}. Command {code}.\n\n## Body\n\n",
        command.name.to_uppercase(),
        command.about
    );
    let source = crate::sample::commands::files();
    let path = format!("src/commands/{}.rs", command.name);
    let text = source.iter().find(|(p, _)| *p == path).map_or("", |(_, text)| text);
    let mut about = "";
    for line in text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("/// ") {
            about = comment;
        } else if let Some((name, kind)) =
            line.strip_prefix("pub ").and_then(|l| l.trim_end_matches(',').split_once(": "))
        {
            let kind = if kind == "Box<str>" { "text" } else { kind };
            let _ = writeln!(out, "- `{name}` ({kind}): {about}");
        }
    }
    let notes: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("//! ")).skip(1).take(1).collect();
    let word = if code <= 6 { "Returns" } else { "Answers" };
    let _ = write!(
        out,
        "\n{}\n\n## Answer\n\n{word} with {}.\n\n## Fails with\n\n",
        notes.join(" "),
        command.answer
    );
    for (needle, fault) in [
        ("Code::BadFrame", "BAD_FRAME if a number is out of its range"),
        ("Code::Empty", "EMPTY if there is nothing"),
        ("Code::Unknown", "UNKNOWN if there is no such job or topic"),
        ("context.worker", "GONE if the lease has run out, NOT_YOURS if it is another worker's"),
        ("Code::from(error)", "STORE if the log could not be written"),
    ] {
        if text.contains(needle) {
            let _ = writeln!(out, "- {fault}");
        }
    }
    out
}
