//! Which sentences are rules of the session, and what people say about themselves.

use ctx_facts::{FactKind, required_facts};

use super::newcomer::{summary, under};
use super::script::session;

const RULES: &str = "Constraints & Preferences";

#[test]
fn what_is_asked_for_one_step_is_no_rule_of_the_session() {
    let end = "\nA: ok\nU: and what does the parser do with tabs?\nA: It skips them.";
    for (ask, rule) in [
        (
            "Read lease.rs and queue.rs again in full before you go on, I want you to have the real text.",
            false,
        ),
        ("Each command should have a test. Keep them tiny, and close to the code they test.", true),
        (
            "Suggest how we can\\n\\n- remove any code duplication\\n- locations where those modules should go",
            false,
        ),
        ("Explain to me what should be done about the retries, and by whom.", false),
        (
            "this results in\\n\\n Error: 400 {\\\"message\\\":\\\"Each\\n `tool_use` block must have a corresponding result in the next\\n message.\\\"}\\n\\nwhy is that?",
            false,
        ),
        ("Keep the public API as it is.", true),
        ("Always read every file in full before you change it.", true),
        ("You must tell me before you change the API.", true),
        ("Prefer small functions with few arguments.", true),
    ] {
        let ask = ask.replace("\\\"", "\"");
        let script = format!("U: Look at the parser first. {ask}{end}");
        let text = summary(&script, None);
        let rules = under(&text, RULES);
        let loose = ["Read lease", "Keep them", "modules should", "what should", "tool_use"];
        let is_loose = |line: &str| loose.iter().any(|word| line.contains(word));
        assert!(!rules.iter().any(|line| is_loose(line)), "{ask}\n{text}");
        let facts = required_facts(&session(&script));
        let mut demands = facts.iter().filter(|fact| fact.kind == FactKind::Constraint);
        let told = rules.iter().any(|line| line.starts_with("- ")) || demands.next().is_some();
        assert_eq!(told, rule, "{ask}\n{text}");
    }
}

#[test]
fn what_people_say_of_themselves_is_kept_and_greetings_are_no_asks() {
    for (script, told, untold) in [
        (
            "U: Hi there!\nA: Hello! How can I help?\nU: I'm Anna, I moved to Lyon in 2019. What should I cook tonight?\nA: A soup.\nU: And tomorrow?\nA: Fish.",
            &["I'm Anna, I moved to Lyon in 2019."][..],
            &["Hi there", "Hello!"][..],
        ),
        (
            "U: 你好！\nA: 您好，有什么可以帮您？\nU: 我叫李雷，我住在上海。推荐一家餐馆？\nA: 可以去老城区看看。\nU: 还有呢？\nA: 城东也有。",
            &["我叫李雷，我住在上海。"],
            &["你好", "您好"],
        ),
        (
            "U: Hey Mel! Good to see you!\nA: Hey Caroline! My daughter Ines turned 5 last week.\nU: Sweet. I've just started to work as a counsellor, I love it.\nA: Wow.\nU: Thanks, Mel!",
            &["My daughter Ines turned 5 last week."],
            &["Good to see you", "Thanks"],
        ),
    ] {
        let text = summary(script, None);
        assert!(told.iter().all(|words| text.contains(words)), "{text}");
        assert!(!untold.iter().any(|words| text.contains(words)), "{text}");
        let kinds = required_facts(&session(script));
        let own = kinds.iter().filter(|fact| fact.kind == FactKind::Personal).count();
        assert_eq!(own, told.len(), "{kinds:?}");
    }
}
