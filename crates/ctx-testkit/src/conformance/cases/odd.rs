//! Unusual sessions.

use ctx_core::{Block, Message, NodeState, Role};

use super::WINDOW;
use super::script::{answer, ask, call, system};
use crate::conformance::bench::Bench;
use crate::conformance::laws;
use crate::conformance::stop::{Stop, Verdict, ensure};

pub(super) fn empty(bench: &Bench) -> Verdict {
    let running = bench.engine(&bench.host(WINDOW))?;
    let mut session = running.session("empty");
    session.bootstrap()?;
    session.request()?;
    session.end_turn()?;
    let mut session = running.session("system-only");
    session.say(system())?;
    session.request()?;
    for blocks in [vec![], vec![Block::text("")]] {
        session.say(Message::new(Role::User, blocks))?;
        session.request()?;
    }
    Ok(None)
}

/// Texts that break code that counts in bytes, in UTF-16, or by lines.
const TEXTS: [&str; 11] = [
    "𝒜stral 𐍈 🦀 👩\u{200d}👧 🏳\u{fe0f}\u{200d}🌈",
    "مرحبا بالعالم שלום עולם",
    "\u{202e}right to left\u{202c} and back",
    "zero\u{200b}width\u{200d}join\u{feff}bom",
    "a lone\rcarriage return, and a pair\r\n",
    "NUL \0 and escape \u{1b}[31m and bell \u{7}",
    "e\u{301} is not é",
    "\u{2028}line\u{2029}paragraph\u{85}next",
    "请看一下配置文件 config/生产.toml 为什么报错",
    "\u{10ffff}\u{e000}\u{fdfa}",
    "\\u0041 \\\" \\n {\"json\": [1]} </summary> <|im_end|>",
];

pub(super) fn unicode(bench: &Bench) -> Verdict {
    // A window for the whole session, and a window for half of it.
    for (window, times) in [(200_000, 1), (16_000, 40)] {
        let running = bench.engine(&bench.host(window))?;
        let mut session = running.session("ünï/çødé 🦀");
        for (n, text) in TEXTS.iter().cycle().take(TEXTS.len() * 4).enumerate() {
            let text = format!("{text} {n}\n").repeat(times);
            session.say(ask(text.clone()))?;
            session.say(call(format!("call-🦀-{n}")))?;
            session.say(Message::tool_result(format!("call-🦀-{n}"), text.clone()))?;
            session.say(answer(text))?;
            session.request()?;
            unharmed(&session.view)?;
            session.next_turn();
        }
    }
    Ok(None)
}

/// Checks that no message lost characters.
fn unharmed(view: &ctx_core::ContextView) -> Result<(), Stop> {
    for node in view.nodes().iter().filter(|node| node.is_live()) {
        let reading = |error| Stop::error("reading", &error);
        let form = node.message().map_err(reading)?.plain_text();
        ensure(
            !form.contains('\u{fffd}'),
            || format!("'{}' is sent with lost characters", node.entry().id()),
            "read and write text as UTF-8, and cut it between characters",
        )?;
        if node.state() != NodeState::Replaced {
            continue;
        }
        let source = node.entry().message().map_err(reading)?.plain_text();
        let plain = |text: &str| -> String {
            text.chars().filter(|c| c.is_alphanumeric() && c.is_ascii()).collect()
        };
        ensure(
            form == source || plain(&form) != plain(&source),
            || format!("'{}' is sent with a changed text", node.entry().id()),
            "do not change text: keep line ends and all characters",
        )?;
    }
    Ok(())
}

/// Characters of a message that exceeds the window of 32,000 tokens several times.
const HUGE: usize = 600_000;

pub(super) fn huge(bench: &Bench) -> Verdict {
    let text = "all work and no play makes a long message\n".repeat(HUGE / 42);
    let running = bench.engine(&bench.host(WINDOW))?;
    let sessions = [
        ("newest", vec![ask(text.clone())]),
        ("past", vec![ask(text.clone()), answer("I see"), ask("and now?")]),
        ("result", vec![ask("read it"), call("c"), Message::tool_result("c", text.clone())]),
        (
            "past-result",
            vec![
                ask("read it"),
                call("c"),
                Message::tool_result("c", text.clone()),
                answer("done"),
                ask("thanks"),
            ],
        ),
        ("said", vec![ask("write a lot"), answer(text), ask("more")]),
    ];
    for (name, messages) in sessions {
        let mut session = running.session(name);
        for message in messages {
            session.say(message)?;
        }
        let must_stay = laws::must_stay(&session.view);
        session.fitting_request(|| name.to_owned())?;
        laws::are_there(&session.view, &must_stay)?;
        // The session continues.
        session.say(answer("yes"))?;
        session.say(ask("what was the last thing I asked?"))?;
        session.request()?;
        laws::pairs(&session.view)?;
    }
    Ok(None)
}
