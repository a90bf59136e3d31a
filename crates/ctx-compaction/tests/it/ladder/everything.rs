//! The ladder with arbitrary models, and on recorded sessions.

use std::sync::Arc;
use std::time::Duration;

use crate::config_of;
use ctx_compaction::{CallLog, Config, Strategy, SummaryJob, ladder};
use ctx_core::{Counter, Message, Role, Summarizer, SummaryModels, Timer, Tokens};
use ctx_session::Transcript;
use ctx_testkit::{Sample, ScriptedSummarizer, VirtualTimer, recorded};

use super::{climb, job_of, model, talk};

/// Checks the properties of every draft.
fn check(job: &SummaryJob, models: &SummaryModels, timer: &VirtualTimer, what: &str) -> bool {
    let mut log = CallLog::default();
    let draft = timer.run(ladder(job, models, &mut log));
    assert!(timer.elapsed() <= Duration::from_secs(300), "{what}: {:?}", timer.elapsed());
    let Some(draft) = draft else {
        assert!(!log.notes.is_empty(), "{what}: nobody says why there is no draft");
        return false;
    };
    assert!(job.counter.text(&draft.text) <= job.summary_budget, "{what}: {}", draft.text);
    assert!(!draft.text.trim().is_empty(), "{what}");
    for force in ["</summary>", "<summary>", "</conversation>", "<invoke", "{\"tool\"", "\u{1b}"] {
        assert!(!draft.text.contains(force), "{what}: {force} in {}", draft.text);
    }
    assert!(!draft.text.contains("/etc/shadow"), "{what}: a made-up list of files");
    assert!(log.calls.iter().any(|call| call.ok), "{what}");
    true
}

#[test]
fn whatever_models_do_the_ladder_ends_in_time_with_a_sound_draft_or_none() {
    let strategies = [Strategy::Rolling, Strategy::MultiPart, Strategy::Single];
    let mut drafts = 0;
    let runs = ctx_testkit::cases(1_500);
    for seed in 0..u64::from(runs) {
        let windows = [4_000, 8_000, 16_000, 128_000];
        let window = Tokens(windows[seed as usize % windows.len()]);
        let config = Config { strategy: strategies[seed as usize % 3], ..Config::default() };
        let messages = match seed % 5 {
            0 => talk(1 + seed as usize % 40),
            _ => Sample { messages: 24, tokens: 9_000, calls_per_turn: 4 }.messages(),
        };
        let mut job = job_of(config, messages);
        job.turn_start = (seed % 7 == 0).then_some(seed as usize % 9);
        job.previous =
            (seed % 3 == 0).then(|| super::previous("## Goal\n- mind the tests")).flatten();
        job.summary_budget = Tokens(100 + seed as u32 % 3_000);
        let timer = VirtualTimer::default();
        let chain = (0..1 + seed % 3)
            .map(|n| ScriptedSummarizer::faulty(seed * 3 + n).with_window(window))
            .map(|model| Arc::new(model) as Arc<dyn Summarizer>);
        let models = SummaryModels { chain: chain.collect(), timer: Arc::new(timer.clone()) };
        drafts += u32::from(check(&job, &models, &timer, &format!("seed {seed}")));
    }
    assert!(
        (runs / 5..runs).contains(&drafts),
        "{drafts}: the models are neither useless nor sound"
    );
}

#[test]
fn recorded_sessions_are_shown_whole_in_requests_that_fit() {
    let counter = Counter::default();
    for file in ["pi/before-compaction.jsonl", "claude-code/01_2026-01-05_a0bd162f.jsonl"] {
        let Some(path) = recorded(file) else { return };
        let entries = Transcript::open(&path).unwrap().all_messages();
        let messages: Vec<Message> = entries
            .iter()
            .filter_map(|entry| Some(Message::clone(&*entry.message().ok()?)))
            .collect();
        for (profile, window) in [("pi", 200_000), ("ponybunny", 128_000), ("openclaw", 32_000)] {
            let mut job = job_of(config_of(profile), messages.clone());
            job.summary_budget = Tokens(13_107);
            let a = Arc::new(model("a").with_window(Tokens(window)));
            let (draft, log, _) = climb(&job, &[&a]);
            assert!(draft.is_some(), "{file} {profile}: {:?}", log.notes);
            let mut shown = String::new();
            for request in a.asked() {
                let size = counter.text(&request.system) + counter.text(&request.prompt);
                assert!(size + request.max_tokens <= Tokens(window), "{file} {profile}");
                shown.push_str(&request.prompt);
            }
            let asks = job.messages.iter().filter(|said| said.message.role == Role::User);
            for said in asks.filter(|said| !said.message.plain_text().is_empty()) {
                assert!(shown.contains(&format!("[e:{}] [User]: ", said.id)), "{file} {}", said.id);
            }
        }
    }
}
