use std::io::Read;

use super::*;

#[test]
fn a_program_answers_line_by_line() {
    let Some(program) = python() else { return };
    let engine = Engine::program(program);
    let first = engine.call("hello").unwrap();
    assert_eq!(first["bytes"], 2);
    let text = json!({"text": "two\nlines"});
    let second = block_on(engine.ask("hello", text, LONG)).unwrap();
    assert_eq!((&second["pid"], &second["bytes"]), (&first["pid"], &json!(22)));
}

#[test]
fn the_end_of_a_program_is_reported_with_its_status_and_stderr() {
    let Some(program) = python() else { return };
    let engine = Engine::program(program);
    let Fault::Crashed { status, stderr } = engine.call("exit").unwrap_err() else {
        panic!("it ended");
    };
    assert_eq!(status, "exit status: 3");
    assert_eq!(stderr.len(), 20);
    assert_eq!(stderr.first().map(String::as_str), Some("line 31"));
    assert_eq!(stderr.last().map(String::as_str), Some("\u{fffd}[31mout of luck"));
    assert_eq!(engine.fault("hello", LONG), "lost");
}

#[test]
fn an_abort_or_a_partial_answer_is_a_crash() {
    for (verb, told) in [("abort", "signal: 6"), ("half", "exit status: 0")] {
        let Some(program) = python() else { return };
        let fault = Engine::program(program).call(verb).unwrap_err();
        assert_eq!(fault.name(), "crashed");
        assert!(fault.to_string().contains(told), "{fault}");
    }
}

#[test]
fn a_program_that_cannot_be_run_is_reported_with_its_path() {
    let engine = Engine::program(Program::new("/no/such/engine"));
    let error = ctx_core::Error::from(engine.call("hello").unwrap_err());
    assert!(error.to_string().contains("program: /no/such/engine"), "{error}");
    assert!(error.hint_text().is_some());
}

#[test]
fn an_answer_without_a_line_end_is_reported_as_the_cause() {
    let script = r#"read -r call; printf '{"id":1,"ok":{}}'"#;
    let fault = Engine::program(shell(script)).call("hello").unwrap_err();
    assert_eq!(fault.name(), "crashed");
    let told = fault.to_string();
    assert!(told.contains(r#"exit status: 0, after a line without a line end: {"id":1"#), "{told}");
    assert!(fault.hint().contains("line feed"), "{}", fault.hint());
}

#[cfg(unix)]
#[test]
fn a_missing_interpreter_is_named_in_the_error() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    for (first, missing) in
        [("#! /no/such/interp -u\n", "/no/such/interp"), ("#!/bin/sh\r\n", r"/bin/sh\r")]
    {
        let script = folder.path().join("engine");
        std::fs::write(&script, first).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
        let error = ctx_core::Error::from(
            Engine::program(Program::new(&script)).call("hello").unwrap_err(),
        );
        assert!(error.to_string().contains(&format!("missing: {missing}")), "{error}");
        assert!(error.hint_text().unwrap().contains(&format!("requires {missing}")), "{error:?}");
    }
}

#[test]
fn a_program_that_closes_a_pipe_is_reported_at_once() {
    let answers_once = r#"read -r call; echo '{"id":1,"ok":{}}'"#;
    // Its children hold the pipes that are not closed, even after the shell ends.
    let output =
        Engine::program(shell(&format!("{answers_once}; read -r call; exec sleep 3600 >&-")));
    output.call("hello").unwrap();
    let fault = output.call("hello").unwrap_err();
    assert_eq!(fault.to_string(), "the engine closed its standard output without ending");
    assert!(output.caller.is_lost());
    // It answers when its input is closed.
    let script = r#"read -r call; exec <&-; echo '{"id":1,"ok":{}}'; exec sleep 3600"#;
    let input = Engine::program(shell(script));
    input.call("hello").unwrap();
    let fault = input.call("hello").unwrap_err();
    assert_eq!(fault.to_string(), "the engine closed its standard input without ending");
}

#[test]
fn the_end_of_a_program_is_reported_at_once_even_if_its_pipes_stay_open() {
    let script = "read -r call; sleep 3600 & exit 3";
    let fault = Engine::program(shell(script)).call("hello").unwrap_err();
    assert_eq!(fault.to_string(), "the engine's process ended (exit status: 3)");
}

#[test]
fn an_answer_sent_before_the_program_ended_counts() {
    let script = r#"read -r call; sleep 3600 & echo '{"id":1,"ok":7}'; exit 0"#;
    let engine = Engine::program(shell(script));
    assert_eq!(engine.call("hello").unwrap(), 7);
    assert_eq!(engine.fault("hello", LONG), "crashed");
}

#[test]
fn a_program_that_never_answers_is_killed_at_its_deadline_and_reaped() {
    let Some(program) = python() else { return };
    let engine = Engine::program(program);
    let pid = engine.call("hello").unwrap()["pid"].clone();
    let late = block_on(engine.ask("stuck", json!({}), SHORT)).unwrap_err();
    assert_eq!(late.name(), "deadline");
    let error = ctx_core::Error::from(late);
    assert!(error.hint_text().unwrap().contains("waiting for nothing"));
    assert_eq!(engine.fault("hello", LONG), "lost");
    drop(engine);
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "it was reaped");
}

#[test]
fn a_large_request_to_a_program_that_does_not_read_ends_at_its_deadline() {
    let engine = Engine::program(shell("exec sleep 3600"));
    let large = json!({"text": "x".repeat(1 << 20)});
    let late = block_on(engine.ask("hello", large, SHORT)).unwrap_err();
    assert_eq!(late.name(), "deadline");
    assert!(engine.caller.is_lost());
}

#[test]
fn a_dropped_program_is_reaped_with_its_children() {
    let Some(program) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let engine = Engine::program(program);
    let answer = engine.ask("start_another", json!({"pipe": pipe}), LONG);
    let pid = block_on(answer).unwrap()["pid"].clone();
    // Blocks until the other side has opened its end, and ends with it.
    let mut other = std::fs::File::open(&pipe).unwrap();
    drop(engine);
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "it was reaped");
    let mut said = Vec::new();
    assert_eq!(other.read_to_end(&mut said).unwrap(), 0);
}

#[test]
fn a_process_that_left_the_group_with_the_pipes_blocks_no_caller() {
    let Some(program) = python() else { return };
    let engine = Engine::program(program);
    assert_eq!(engine.fault("leave_one_behind", SHORT), "deadline");
    drop(engine);
}

#[test]
fn a_line_over_the_limit_ends_the_program() {
    let Some(program) = python() else { return };
    let engine = Engine::program(program.with_max_answer_bytes(10 << 20));
    assert_eq!(engine.fault("huge", LONG), "too-large");
    assert_eq!(engine.fault("hello", LONG), "lost");
}

#[test]
fn a_broken_frame_is_the_same_fault_as_a_broken_line() {
    for (printed, then, fault) in [
        // A part of the length, and of the message.
        (r"\301\0\0", "exit 0", "crashed"),
        (r"\301\0\0\0\05\201", "exit 0", "crashed"),
        // Four GiB are announced, or nothing, or other bytes than a message.
        (r"\301\377\377\377\377\200", "exec sleep 3600", "too-large"),
        (r"\301\0\0\0\0", "exec sleep 3600", "garbage"),
        (r"\301\0\0\0\02ok", "exec sleep 3600", "garbage"),
        (r"\301\0\0\0\02\201\301", "exec sleep 3600", "garbage"),
        // A message without a frame is a line, here unfinished.
        (r"\202\242id\01\242ok\200", "exit 0", "crashed"),
    ] {
        let engine = Engine::program(shell(&format!("read -r call; printf '{printed}'; {then}")));
        assert_eq!(engine.fault("hello", LONG), fault, "{printed}");
    }
    let answer = r"\301\0\0\0\011\202\242id\01\242ok\07";
    let engine = Engine::program(shell(&format!("read -r call; printf '{answer}'; sleep 3600")));
    assert_eq!(engine.call("hello").unwrap(), 7);
}

#[test]
fn after_a_print_to_stdout_the_next_call_gets_its_own_answer() {
    let Some(program) = python() else { return };
    let engine = Engine::program(program);
    let fault = engine.call("garbage").unwrap_err();
    assert!(fault.to_string().contains("output: Loading model..."), "{fault}");
    assert_eq!(engine.fault("other_id", LONG), "garbage");
    assert_eq!(engine.call("hello").unwrap()["bytes"], 2);
}

#[test]
fn endless_stderr_output_blocks_no_call() {
    let Some(program) = python() else { return };
    let engine = Engine::program(program);
    assert_eq!(engine.call("flood").unwrap()["bytes"], 2);
}

#[test]
fn a_program_can_call_its_host_during_a_call() {
    let Some(program) = python() else { return };
    let engine = Engine::program(program);
    assert_eq!(engine.call("count").unwrap(), json!({"id": 1, "reply": {"tokens": [2]}}));
}

#[test]
fn a_program_that_reads_no_replies_is_killed() {
    let Some(program) = python() else { return };
    let engine = Engine::program(program.with_max_answer_bytes(1 << 20));
    assert_eq!(engine.fault("ask_and_never_read", LONG), "garbage");
    assert!(engine.caller.is_lost());
}

#[test]
fn a_program_that_obeys_a_cancel_is_not_killed() {
    let Some(program) = python() else { return };
    let engine = Engine::program(program);
    // Without this call, the deadline includes the start of the interpreter.
    engine.call("hello").unwrap();
    assert_eq!(engine.fault("until_cancelled", SHORT), "deadline");
    assert_eq!(engine.fault("late", SHORT), "deadline", "a late answer is none");
    assert!(engine.call("hello").is_ok());
}

#[test]
fn a_program_gets_only_a_few_environment_variables() {
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO")), "cargo sets these");
    let script =
        r#"read -r call; printf '{"id":1,"ok":"%s"}\n' "$(env | cut -d= -f1 | tr '\n' ' ')""#;
    let names = Engine::program(shell(script)).call("hello").unwrap();
    let names: Vec<_> = names.as_str().unwrap().split_whitespace().collect();
    assert!(names.contains(&"PATH"), "{names:?}");
    // The rest is set by the shell itself.
    let allowed = ["PATH", "HOME", "LANG", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"];
    assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_memory_of_a_program_is_limited() {
    let Some(program) = python() else { return };
    let engine = Engine::program(program.clone().with_memory_limit(Some(256 << 20)));
    let take = |engine: &Engine, bytes: u64| {
        block_on(engine.ask("take_memory", json!({"bytes": bytes}), LONG))
    };
    let fault = take(&engine, 400 << 20).unwrap_err();
    assert_eq!(fault.to_string(), "the engine refused: out of memory");
    assert_eq!(take(&engine, 1 << 20).unwrap(), 1 << 20);
    let unbounded = Engine::program(program.with_memory_limit(None));
    assert_eq!(take(&unbounded, 400 << 20).unwrap(), 400 << 20);
}
