//! The calls of each strategy, their order, and how the answers are combined.

use std::sync::Arc;

use crate::config_of;
use ctx_compaction::{Config, Rung, SUMMARIZATION_OVERHEAD_TOKENS, Strategy, branch_ladder};
use ctx_core::{Message, Role, SummaryModels, Tokens};
use ctx_extract::TURN_CONTEXT_HEADING;
use ctx_testkit::{Reply, VirtualTimer};

use super::{GOOD, calls, climb, job, job_of, model, previous, talk};

fn config(strategy: Strategy) -> Config {
    Config { strategy, ..Config::default() }
}

/// Messages of a thousand tokens each.
fn long_talk(len: usize) -> Vec<Message> {
    (0..len).map(|n| Message::text(Role::User, format!("retry loop {n:03} ").repeat(267))).collect()
}

#[test]
fn rolling_goes_chunk_by_chunk_and_each_chunk_knows_the_summary_so_far() {
    let a = Arc::new(model("a").with_window(Tokens(40_000)).replies(
        ["first", "second", "third", "fourth"].map(|n| {
            Reply::Text(format!("## Goal\n- {n} retry summary, steps 000 to 999, loop goes on"))
        }),
    ));
    let mut job = job_of(config(Strategy::Rolling), long_talk(32));
    job.previous =
        previous("## Goal\n- the summary before\n\n<read-files>\nsrc/old.rs\n</read-files>");
    let (draft, log, _) = climb(&job, &[&a]);
    assert_eq!(calls(&log), [1, 2, 3, 4].map(|n| format!("a: summary, chunk {n} of 4")));
    assert_eq!(
        draft.unwrap().text,
        "## Goal\n- fourth retry summary, steps 000 to 999, loop goes on"
    );
    let seen = ["the summary before", "first retry", "second retry", "third retry"];
    for (request, before) in a.asked().iter().zip(seen) {
        let (_, behind) = request.prompt.split_once("<previous-summary>").unwrap();
        assert!(behind.contains(before), "{before}");
        assert!(!behind.contains("src/old.rs"), "lists of files are carried over as data");
        // 0.4 of 40,000 tokens, less the average message's share, less the overhead.
        let chunk = Tokens(40_000).scale(0.4) - SUMMARIZATION_OVERHEAD_TOKENS;
        let (history, _) = request.prompt.split_once("</conversation>").unwrap();
        assert!(job.counter.text(history) <= chunk);
    }
    let all: String = a.asked().iter().map(|request| request.prompt.clone()).collect();
    for n in 0..32 {
        assert_eq!(all.matches(&format!("[e:{n:08x}]")).count(), 1, "message {n} is sent once");
    }
}

#[test]
fn parts_are_written_side_by_side_and_merged_with_the_previous_summary() {
    let a = Arc::new(model("a"));
    let mut job = job(config(Strategy::MultiPart));
    job.previous = previous("## Goal\n- the summary before");
    let (draft, log, _) = climb(&job, &[&a]);
    // 1 / 0.4 is three parts.
    assert_eq!(calls(&log), ["a: part 1 of 3", "a: part 2 of 3", "a: part 3 of 3", "a: merge"]);
    let merge = a.asked().pop().unwrap();
    assert_eq!(merge.prompt.matches("<partial-summary>").count(), 4);
    let (before, first) = merge.prompt.split_once("</partial-summary>").unwrap();
    assert!(before.contains("the summary before") && first.contains("step 0"));
    assert_eq!(draft.unwrap().rung, Rung::Model);
}

#[test]
fn few_messages_are_not_split_and_more_parts_can_be_asked_for() {
    let a = Arc::new(model("a"));
    let (_, log, _) = climb(&job_of(config(Strategy::MultiPart), talk(3)), &[&a]);
    assert_eq!(calls(&log), ["a: summary"]);
    let five = Config { parts: 5, ..config(Strategy::MultiPart) };
    let (_, log, _) = climb(&job_of(five, talk(12)), &[&a]);
    assert_eq!(log.calls.len(), 6, "{:?}", calls(&log));
}

#[test]
fn parts_that_cannot_be_merged_are_joined() {
    let part = |n: u32| Reply::Text(format!("## Progress\n- the retry loop, part {n}"));
    let a = model("a").replies([part(1), part(2), part(3)]);
    let a = Arc::new(a.otherwise(Reply::Error(ctx_core::ErrorKind::Upstream)));
    let (draft, log, _) = climb(&job(config(Strategy::MultiPart)), &[&a]);
    let text = draft.unwrap().text;
    assert!((1..=3).all(|n| text.contains(&format!("part {n}"))), "{text}");
    assert!(log.notes[0].starts_with("a: parts were joined, not merged"), "{:?}", log.notes);
}

#[test]
fn a_single_call_takes_all_that_fits_the_window() {
    let messages = long_talk(60);
    let a = Arc::new(model("a"));
    let (_, log, _) = climb(&job_of(config(Strategy::Single), messages.clone()), &[&a]);
    assert_eq!(calls(&log), ["a: summary"], "60,000 of 128,000 tokens");
    let (_, log, _) = climb(&job_of(config(Strategy::Rolling), messages.clone()), &[&a]);
    assert_eq!(calls(&log), ["a: summary"], "what fits is not cut");
    let (_, log, _) = climb(&job_of(config(Strategy::Rolling), long_talk(110)), &[&a]);
    assert_eq!(log.calls.len(), 3, "0.4 of 128,000 in each: {:?}", calls(&log));
    let small = Arc::new(model("small").with_window(Tokens(32_000)));
    let (_, log, _) = climb(&job_of(config(Strategy::Single), messages), &[&small]);
    assert!(log.calls.len() > 2, "it does not fit: {:?}", calls(&log));
}

#[test]
fn a_small_window_is_used_as_far_as_it_goes() {
    // 0.4 of it less the overhead is 2,300: a call for every two messages.
    let a = Arc::new(model("a").with_window(Tokens(16_000)));
    let (_, log, _) = climb(&job_of(config(Strategy::Rolling), long_talk(18)), &[&a]);
    assert!((2..=3).contains(&log.calls.len()), "{:?}", calls(&log));
    let (_, log, _) = climb(&job_of(config(Strategy::Rolling), long_talk(7)), &[&a]);
    assert_eq!(calls(&log), ["a: summary"]);
}

#[test]
fn a_split_turn_is_told_in_a_part_of_its_own() {
    let turn = "## Original Request\n- fix the retry loop [e:00000004]";
    for strategy in [Strategy::Rolling, Strategy::Single, Strategy::MultiPart] {
        let config = Config { min_messages_for_split: 99, ..config(strategy) };
        // History and turn are called for concurrently, history first.
        let replies = [GOOD, turn].map(|text| Reply::Text(text.into()));
        let a = Arc::new(model("a").replies(replies));
        let mut job = job(config.clone());
        job.turn_start = Some(4);
        let (draft, log, _) = climb(&job, &[&a]);
        assert_eq!(calls(&log), ["a: summary", "a: turn prefix"], "{strategy:?}");
        assert_eq!(draft.unwrap().text, format!("{GOOD}{TURN_CONTEXT_HEADING}{turn}"));
        let asked = a.asked();
        assert!(asked[0].prompt.contains("step 3") && !asked[0].prompt.contains("step 4"));
        assert!(!asked[1].prompt.contains("step 3") && asked[1].prompt.contains("step 4"));
        assert!(asked[1].prompt.contains("## Original Request"));
        assert!(asked[1].max_tokens < asked[0].max_tokens);

        // If the turn is all there is, the previous summary is kept verbatim.
        let a = Arc::new(model("a").replies([Reply::Text(turn.into())]));
        let mut job = super::job(config);
        job.turn_start = Some(0);
        job.previous = previous("## Goal\n- the summary before");
        let (draft, log, _) = climb(&job, &[&a]);
        assert_eq!(calls(&log), ["a: turn prefix"]);
        let kept = format!("## Goal\n- the summary before{TURN_CONTEXT_HEADING}{turn}");
        assert_eq!(draft.unwrap().text, kept);

        let a = Arc::new(model("a").replies([Reply::Text(turn.into())]));
        job.previous = None;
        let (draft, ..) = climb(&job, &[&a]);
        assert!(draft.unwrap().text.starts_with("No prior history.\n\n---\n\n"));
    }
}

#[test]
fn messages_past_half_of_the_window_are_noted_not_sent() {
    let mut messages = talk(8);
    messages[3] = Message::text(Role::Assistant, "monster ".repeat(10_000));
    let note = "[Large assistant (~20K tokens) omitted]";
    for (profile, tail) in [
        ("openclaw", format!("\n\n[部分大消息因超限被省略]\n{note}")),
        ("ponybunny", format!("\n\n{note}")),
        ("copaw", format!("\n\n{note}")),
    ] {
        let small = Arc::new(model("small").with_window(Tokens(32_000)));
        let job = job_of(config_of(profile), messages.clone());
        let (draft, log, _) = climb(&job, &[&small]);
        let draft = draft.unwrap();
        assert_eq!(draft.rung, Rung::WithoutOversized);
        assert_eq!(draft.notes, tail, "{profile}: {}", draft.text);
        assert!(small.asked().iter().all(|request| !request.prompt.contains("monster")));
        assert!(small.asked().iter().any(|request| request.prompt.contains(note)));
        assert_eq!(log.notes, ["small: 1 message exceeds half of its context window"]);
        // A model that can read it comes first, at any position in the chain.
        let large = Arc::new(model("large"));
        let (draft, ..) = climb(&job, &[&small, &large]);
        let draft = draft.unwrap();
        assert_eq!((draft.model.as_str(), draft.rung), ("large", Rung::Model));
    }
}

#[test]
fn nothing_but_oversized_messages_is_nothing_to_summarise() {
    let a = Arc::new(model("a").with_window(Tokens(16_000)));
    let messages = [Message::text(Role::User, "monster ".repeat(20_000))];
    let mut job = job_of(config(Strategy::Rolling), messages);
    let (draft, _, _) = climb(&job, &[&a]);
    assert_eq!((draft, a.asked().len()), (None, 0), "the extractive summariser can do better");
    job.turn_start = Some(0);
    let (draft, _, _) = climb(&job, &[&a]);
    assert_eq!((draft, a.asked().len()), (None, 0));
}

#[test]
fn a_branch_is_summarised_with_its_own_prompt_and_says_what_it_is() {
    let a = Arc::new(model("a").replies([Reply::Text(GOOD.into())]));
    let timer = VirtualTimer::default();
    let models = SummaryModels { chain: vec![a.clone()], timer: Arc::new(timer.clone()) };
    let job = job(config(Strategy::Single));
    let draft = timer.run(branch_ladder(&job, &models, &mut Default::default())).unwrap();
    let preamble = "The user explored a different conversation branch before returning here.\n\
        Summary of that exploration:\n\n";
    assert_eq!(draft.text, format!("{preamble}{GOOD}"));
    let prompt = a.asked().remove(0).prompt;
    assert!(prompt.contains("a branch that the user left") && !prompt.contains("Critical Context"));
}
