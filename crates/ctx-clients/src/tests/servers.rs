//! Where clients send their requests, and where they did before.

use std::fs;
use std::path::Path;

use ctx_core::ErrorKind;
use serde_json::{Value, json};

use super::{Place, URL};
use crate::{Client, Family, Proxy, Scope, Setup};

#[test]
fn the_server_that_a_setup_replaces_is_known() {
    let place = Place::new();
    let text = "model_provider = 'my'\n[model_providers.my]\nbase_url = 'http://gateway/v1'\n";
    let path = place.write(".codex/config.toml", text);
    let gateway = (Family::OpenAi, "http://gateway/v1".to_owned());
    assert_eq!(place.lost(Client::Codex), [gateway]);
    place.set_up(Client::Codex);
    assert!(fs::read_to_string(path).unwrap().contains("base_url = \"http://127.0.0.1:8787/v1\""));
    let replaced = Client::Codex.replaced(&place.records(), &place.environment).unwrap();
    assert_eq!(replaced, [(Family::OpenAi, "http://gateway/v1".to_owned())]);
    let launch = Client::Codex.launch(&Proxy::at(URL), &place.environment).unwrap();
    assert_eq!(launch.args, ["-c", "model_providers.my.base_url=\"http://127.0.0.1:8787/v1\""]);
}

#[test]
fn a_run_keeps_the_server_of_the_user() {
    let mut place = Place::new();
    let upstreams = |place: &Place, client: Client| {
        client.upstreams(&place.records(), &place.environment).unwrap()
    };
    assert_eq!(upstreams(&place, Client::Claude), []);
    place.write(".claude/settings.json", r#"{"env":{"ANTHROPIC_BASE_URL":"http://gateway"}}"#);
    place.environment.variables.insert("ANTHROPIC_BASE_URL".into(), "http://other".into());
    let gateway = (Family::Anthropic, "http://gateway".to_owned());
    assert_eq!(upstreams(&place, Client::Claude), [gateway]);
    let launch = Client::Claude.launch(&Proxy::at(URL), &place.environment).unwrap();
    assert_eq!(launch.args[0], "--settings");
    let settings: Value = serde_json::from_slice(&fs::read(&launch.args[1]).unwrap()).unwrap();
    assert_eq!(settings, json!({ "env": { "ANTHROPIC_BASE_URL": URL } }));
    let other = (Family::Anthropic, "http://other".to_owned());
    assert_eq!(upstreams(&place, Client::Sdk), [other]);
    place.set_up(Client::Codex);
    assert_eq!(upstreams(&place, Client::Codex), [], "what ctx wrote is not a server");
    let replaced = Client::Codex.replaced(&place.records(), &place.environment).unwrap();
    assert_eq!(replaced, [], "it had the public one");
}

#[test]
fn the_first_source_of_a_client_applies() {
    let mut place = Place::new();
    let claude = |url: &str| format!(r#"{{"env":{{"ANTHROPIC_BASE_URL":"http://{url}"}}}}"#);
    let applied = |place: &Place, client: Client| {
        let found = client.addresses(&place.environment).unwrap();
        found.into_iter().map(|address| address.url).collect::<Vec<_>>()
    };
    place.environment.variables.insert("ANTHROPIC_BASE_URL".into(), "http://variable".into());
    assert_eq!(applied(&place, Client::Claude), ["http://variable"]);
    for (file, url) in [
        (".claude/settings.json", "user"),
        ("project/.claude/settings.json", "shared"),
        ("project/.claude/settings.local.json", "local"),
        ("project/given.json", "given"),
    ] {
        place.environment.args = vec!["--settings=given.json".into()];
        place.write(file, &claude(url));
        assert_eq!(applied(&place, Client::Claude), [format!("http://{url}")]);
    }
    place.write(".aider.conf.yml", "openai-api-base: http://file\n");
    for (name, url) in [
        ("OPENAI_API_BASE", "file"),
        ("AIDER_OPENAI_API_BASE", "aider"),
        ("OPENAI_BASE_URL", "aider"),
    ] {
        place.environment.variables.insert(name.into(), "http://aider".into());
        assert_eq!(applied(&place, Client::Aider)[0], format!("http://{url}"));
    }
    let inline = r#"{"provider":{"openai":{"options":{"baseURL":"http://inline"}}}}"#;
    place.environment.variables.insert("OPENCODE_CONFIG_CONTENT".into(), inline.into());
    assert_eq!(applied(&place, Client::Opencode), ["http://inline"]);
    place.write(".gemini/.env", "GOOGLE_GEMINI_BASE_URL=http://user\n");
    assert_eq!(applied(&place, Client::Gemini), ["http://user"]);
    place.write("project/.env", "A=1\n");
    assert!(applied(&place, Client::Gemini).is_empty(), "the nearest file alone is read");
    place.write("project/.gemini/.env", "GOOGLE_GEMINI_BASE_URL=http://project\n");
    let variable = ("GOOGLE_GEMINI_BASE_URL".into(), "http://variable".into());
    assert_eq!(applied(&place, Client::Gemini), ["http://project"]);
    place.environment.variables.extend([variable]);
    assert_eq!(applied(&place, Client::Gemini), ["http://variable"]);
}

#[test]
fn a_profile_and_an_argument_choose_the_provider_of_codex() {
    let mut place = Place::new();
    let provider = |name| format!("[model_providers.{name}]\nbase_url = 'http://{name}/v1'\n");
    let config = format!("model_provider = 'a'\n{}{}", provider("a"), provider("b"));
    place.write(".codex/config.toml", &config);
    let profile = format!("model_provider = 'c'\n{}", provider("c"));
    place.write(".codex/work.config.toml", &profile);
    for (args, name) in [
        (&["exec"][..], "a"),
        (&["exec", "-p", "work"], "c"),
        (&["--profile=work"], "c"),
        (&["--profile", "other"], "a"),
        (&["-p", "work", "-c", "model_provider=\"b\""], "b"),
        (&["--", "-p", "work"], "a"),
    ] {
        place.environment.args = args.iter().map(Into::into).collect();
        let upstreams = Client::Codex.upstreams(&place.records(), &place.environment).unwrap();
        assert_eq!(upstreams, [(Family::OpenAi, format!("http://{name}/v1"))], "{args:?}");
        let launch = Client::Codex.launch(&Proxy::at(URL), &place.environment).unwrap();
        let flag = format!("model_providers.{name}.base_url=\"{URL}/v1\"");
        assert_eq!(launch.args[..2], ["-c".into(), std::ffi::OsString::from(flag)], "{args:?}");
        assert_eq!(launch.args[2..], place.environment.args);
    }
}

#[test]
fn only_the_server_of_the_provider_in_use_is_replaced_for_a_run() {
    let mut place = Place::new();
    let two = r#"{"providers":{
        "a":{"baseUrl":"http://a/v1"}, "b":{"baseUrl":"http://b/v1"},
        "c":{"baseUrl":"http://c","api":"anthropic-messages"},
        "d":{"baseUrl":"http://d","api":"bedrock-converse-stream"}}}"#;
    let models = place.write(".pi/agent/models.json", two);
    let conflict = Client::Pi.upstreams(&place.records(), &place.environment).unwrap_err();
    assert_eq!(conflict.kind(), ErrorKind::Conflict);
    place.write(".pi/agent/settings.json", r#"{"defaultProvider":"b"}"#);
    for (args, name) in [(&[][..], "b"), (&["--model", "a/m"], "a"), (&["--provider", "b"], "b")] {
        place.environment.args = args.iter().map(Into::into).collect();
        let upstreams = Client::Pi.upstreams(&place.records(), &place.environment).unwrap();
        let openai = (Family::OpenAi, format!("http://{name}/v1"));
        assert_eq!(upstreams, [openai, (Family::Anthropic, "http://c".to_owned())]);
        let launch = Client::Pi.launch(&Proxy::at(URL), &place.environment).unwrap();
        let text = fs::read_to_string(&launch.args[1]).unwrap();
        let urls = format!(r#"{{"{name}":"{URL}/v1","c":"{URL}","google":"{URL}/v1beta"}}"#);
        assert!(text.contains(&urls), "{text}");
    }
    assert_eq!(fs::read_to_string(models).unwrap(), two);
}

#[test]
fn openclaw_gets_a_configuration_that_includes_the_users() {
    let mut place = Place::new();
    let error = Client::Openclaw.launch(&Proxy::at(URL), &place.environment).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capability);
    let config = r#"{models: {providers: {a: {baseUrl: 'http://a/v1', apiKey: 'k'}}}}"#;
    let path = place.write(".openclaw-work/openclaw.json", config);
    place.environment.args = vec!["--profile".into(), "work".into()];
    let roots = "OPENCLAW_INCLUDE_ROOTS";
    place.environment.variables.insert(roots.into(), "/shared".into());
    let launch = Client::Openclaw.launch(&Proxy::at(URL), &place.environment).unwrap();
    let variable = |name| &launch.variables.iter().find(|(known, _)| *known == name).unwrap().1;
    assert_eq!(*variable("OPENCLAW_STATE_DIR"), path.parent().unwrap());
    assert!(std::env::split_paths(variable(roots)).any(|root| root == path.parent().unwrap()));
    assert!(std::env::split_paths(variable(roots)).any(|root| root == Path::new("/shared")));
    let written = fs::read_to_string(variable("OPENCLAW_CONFIG_PATH")).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    let url = format!("{URL}/v1");
    let expected =
        json!({ "$include": path, "models": { "providers": { "a": { "baseUrl": url } } } });
    assert_eq!(written, expected, "no key is copied");
    assert_eq!(fs::read_to_string(path).unwrap(), config);
}

#[test]
fn servers_with_different_keys_do_not_become_one() {
    let place = Place::new();
    let two =
        r#"{"models":{"providers":{"a":{"baseUrl":"http://a/v1"},"b":{"baseUrl":"http://b/v1"}}}}"#;
    place.write(".openclaw/openclaw.json", two);
    let error = place.plan_at(Client::Openclaw, URL).unwrap_err();
    assert!(error.to_string().contains("several servers"), "{error}");
}

#[test]
fn a_proxy_is_known_by_each_name_of_this_machine() {
    let proxy = Proxy::at("http://127.0.0.1:878");
    for (url, is_it) in [
        ("http://localhost:878/v1", true),
        ("http://[::1]:878", true),
        ("http://127.0.0.1:8787/v1", false),
        ("http://10.0.0.1:878", false),
        ("no url", false),
    ] {
        assert_eq!(proxy.is_at(url), is_it, "{url}");
    }
}

#[test]
fn providers_of_opencode_are_found_in_each_of_its_configurations() {
    let mut place = Place::new();
    let provider = |npm: &str, url: &str| json!({ "npm": npm, "options": { "baseURL": url } });
    let global = json!({ "model": "corp/m", "provider": {
        "corp": provider("@ai-sdk/openai-compatible", "http://corp/v1"),
        "bedrock": provider("@ai-sdk/amazon-bedrock", "http://bedrock"),
        "lab": { "npm": "@ai-sdk/anthropic" },
    }});
    place.write(".config/opencode/opencode.json", &global.to_string());
    place.write(
        "project/opencode.json",
        r#"{"provider":{"lab":{"options":{"baseURL":"http://lab/v1"}}}}"#,
    );
    let inline =
        json!({ "theme": "x", "provider": { "own": provider("@ai-sdk/openai", "http://own/v1") } });
    let variable = "OPENCODE_CONFIG_CONTENT";
    place.environment.variables.insert(variable.into(), inline.to_string().into());
    for (args, openai, used) in [
        (&["run", "hi"][..], "corp", Some("http://corp/v1")),
        (&["run", "-m", "own/m"], "own", Some("http://own/v1")),
        (&["run", "--model=openai/gpt"], "openai", None),
    ] {
        place.environment.args = args.iter().map(Into::into).collect();
        let upstreams = Client::Opencode.upstreams(&place.records(), &place.environment).unwrap();
        let lab = (Family::Anthropic, "http://lab/v1".to_owned());
        let openai_server = used.map(|url| (Family::OpenAi, url.to_owned()));
        assert_eq!(upstreams.len(), 1 + usize::from(used.is_some()), "{upstreams:?}");
        assert!([Some(lab), openai_server].iter().flatten().all(|found| upstreams.contains(found)));
        let launch = Client::Opencode.launch(&Proxy::at(URL), &place.environment).unwrap();
        let content: Value = serde_json::from_str(launch.variables[0].1.to_str().unwrap()).unwrap();
        let url = |name: &str| content["provider"][name]["options"]["baseURL"].as_str();
        let version_1 = format!("{URL}/v1");
        assert_eq!(url("lab"), Some(version_1.as_str()));
        for name in ["corp", "own", "openai"] {
            assert_eq!(url(name) == Some(&version_1), name == openai, "{args:?} {name}");
        }
        assert_eq!((url("anthropic"), url("bedrock")), (None, None));
        assert_eq!(content["theme"], "x");
    }
}

#[test]
fn a_run_after_a_setup_sends_each_api_to_the_server_that_it_had() {
    let place = Place::new();
    let providers = json!({ "model": "groq/m", "provider": {
        "groq": { "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": "http://a/v1" } },
        "gateway": { "npm": "@ai-sdk/anthropic", "options": { "baseURL": "http://b/v1" } },
    }});
    place.write(".config/opencode/opencode.json", &providers.to_string());
    let servers =
        [(Family::OpenAi, "http://a/v1".to_owned()), (Family::Anthropic, "http://b/v1".to_owned())];
    for server in place.lost(Client::Opencode) {
        assert!(servers.contains(&server));
    }
    place.set_up(Client::Opencode);
    assert_eq!(place.lost(Client::Opencode), []);
    let mut replaced = Client::Opencode.replaced(&place.records(), &place.environment).unwrap();
    replaced.sort_by_key(|(_, url)| url.clone());
    assert_eq!(replaced, servers);
}

#[test]
fn all_configurations_of_opencode_count() {
    let mut place = Place::new();
    let gateway = json!({ "model": "gw/m", "provider": {
        "gw": { "npm": "@ai-sdk/openai", "options": { "baseURL": "http://mine/v1" } } } });
    place.write(".config/opencode/opencode.json", &gateway.to_string());
    place.write("project/.git/HEAD", "");
    place.environment.folder = place.environment.home.join("project/deep");
    let url = |url: &str| json!({ "provider": { "gw": { "options": { "baseURL": url } } } });
    place.environment.variables.insert("GATEWAY".into(), "http://work".into());
    for (file, text, applied) in [
        (".config/opencode/opencode.jsonc", url("http://more/v1"), "http://more/v1"),
        ("opencode.json", url("http://above/v1"), "http://more/v1"),
        ("project/opencode.json", url("{env:GATEWAY}/v1"), "http://work/v1"),
        ("project/deep/.opencode/opencode.json", url("http://deep/v1"), "http://deep/v1"),
    ] {
        place.write(file, &text.to_string());
        let upstreams = Client::Opencode.upstreams(&place.records(), &place.environment).unwrap();
        assert_eq!(upstreams, [(Family::OpenAi, applied.to_owned())], "{file}");
    }
    assert!(place.set_up(Client::Opencode).files()[0].path.ends_with("opencode/opencode.jsonc"));
}

#[test]
fn servers_in_env_files_are_known() {
    let mut place = Place::new();
    place.write("project/.git/HEAD", "");
    place.environment.folder = place.environment.home.join("project/deep");
    for (client, name) in [(Client::Aider, "OPENAI_API_BASE"), (Client::Qwen, "OPENAI_BASE_URL")] {
        place.write("project/.env", &format!("{name}=http://a/v1\n"));
        let upstreams = client.upstreams(&place.records(), &place.environment).unwrap();
        assert_eq!(upstreams, [(Family::OpenAi, "http://a/v1".to_owned())], "{client}");
        assert_eq!(place.lost(client), if client == Client::Aider { upstreams } else { vec![] });
    }
}

#[test]
fn the_addresses_of_arguments_and_of_the_proxy_itself_are_known() {
    let mut place = Place::new();
    let config = "model_provider = 'a'\n[model_providers.a]\nname = 'a'\n";
    place.write(".codex/config.toml", config);
    place.environment.args =
        ["-c", "model_providers.a.base_url='http://b/v1'", "exec"].map(Into::into).to_vec();
    let upstreams = Client::Codex.upstreams(&place.records(), &place.environment).unwrap();
    assert_eq!(upstreams, [(Family::OpenAi, "http://b/v1".to_owned())]);
    let launch = Client::Codex.launch(&Proxy::at(URL), &place.environment).unwrap();
    let flag = format!("model_providers.a.base_url=\"{URL}/v1\"");
    assert_eq!(launch.args, ["-c", &flag, "exec"].map(std::ffi::OsString::from));
    place.write(".codex/config.toml", "model_provider = 'ollama'\n");
    let error = Client::Codex.launch(&Proxy::at(URL), &place.environment).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capability);
    place.write(".qwen/.env", "OPENAI_BASE_URL=http://localhost:8787/v1/\n");
    assert_eq!(place.lost(Client::Qwen), [], "it is the proxy");
    place.write(".claude/settings.json", r#"{"env":{"ANTHROPIC_BASE_URL":""}}"#);
    assert_eq!(place.lost(Client::Claude), [], "it is none");
    place.environment.variables.insert("ANTHROPIC_BASE_URL".into(), "http://g".into());
    assert_eq!(place.lost(Client::Claude), [(Family::Anthropic, "http://g".to_owned())]);
}

#[test]
fn the_server_before_a_setup_is_known_wherever_its_address_was() {
    let mut place = Place::new();
    for name in ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"] {
        place.environment.variables.insert(name.into(), "http://gw".into());
    }
    place.set_up(Client::Claude);
    // The variable wins over this setup, and may be unset later.
    place.set_up(Client::Qwen);
    place.environment.variables.clear();
    let replaced = |place: &Place, client: Client| {
        client.replaced(&place.records(), &place.environment).unwrap()
    };
    assert_eq!(replaced(&place, Client::Claude), [(Family::Anthropic, "http://gw".to_owned())]);
    assert_eq!(replaced(&place, Client::Qwen), [(Family::OpenAi, "http://gw".to_owned())]);
    // A later setup takes it over.
    let project = Scope::Project(place.environment.folder.clone());
    let files = Client::Claude.base_url_files(&project, &Proxy::at(URL), &place.environment);
    let setup = Setup::plan(Client::Claude, project, files.unwrap(), &place.records()).unwrap();
    let servers = setup.servers_before(&place.records(), &place.environment).unwrap();
    setup.apply(&place.records(), &servers).unwrap();
    place.undo(Client::Claude);
    assert_eq!(replaced(&place, Client::Claude), [(Family::Anthropic, "http://gw".to_owned())]);
    place.undo(Client::Qwen);
    // A setup of a project applies below its folder.
    place.write("project/.env", "OPENAI_BASE_URL=http://team/v1\n");
    let project = Scope::Project(place.environment.folder.clone());
    let files = Client::Qwen.base_url_files(&project, &Proxy::at(URL), &place.environment).unwrap();
    let setup = Setup::plan(Client::Qwen, project, files, &place.records()).unwrap();
    let servers = setup.lost_servers(&place.records(), &place.environment).unwrap();
    setup.apply(&place.records(), &servers).unwrap();
    place.environment.folder = place.environment.folder.join("deep");
    let team = (Family::OpenAi, "http://team/v1".to_owned());
    assert_eq!(replaced(&place, Client::Qwen), [team]);
    assert_eq!(Client::Qwen.upstreams(&place.records(), &place.environment).unwrap(), []);
    // Aider reads this file too.
    place.write("project/.git/HEAD", "");
    assert_eq!(replaced(&place, Client::Aider), [(Family::OpenAi, "http://team/v1".to_owned())]);
}

#[test]
fn what_is_no_other_server_is_not_taken_for_one() {
    let place = Place::new();
    for url in ["", "http://localhost:8787/v1/", "https://api.openai.com/v1"] {
        place.write(".aider.conf.yml", &format!("openai-api-base: {url}\n"));
        assert_eq!(place.lost(Client::Aider), [], "{url}");
    }
    for text in [
        "\"openai-api-base\": http://a\n",
        "  openai-api-base: http://a\n",
        "openai-api-base:\n  http://a\n",
        "openai-api-base: *a\n",
        "? openai-api-base\n: http://a\n",
    ] {
        place.write(".aider.conf.yml", text);
        let error = Client::Aider.upstreams(&place.records(), &place.environment).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Capability, "{text}");
    }
    place.write(".aider.conf.yml", "openai-api-base: null\n");
    assert_eq!(Client::Aider.addresses(&place.environment).unwrap(), []);
    place.write(".env", "OPENAI_API_KEY=k\n");
    assert!(place.set_up(Client::Qwen).files()[0].path.ends_with(".env"));
    assert!(!place.environment.home.join(".qwen").exists(), "a new file would hide the other");
}

#[test]
fn aider_gets_a_file_that_wins_over_its_own() {
    let mut place = Place::new();
    place.write("project/.env", "AIDER_OPENAI_API_BASE=http://a/v1\n");
    place.write("project/more.env", "OPENAI_API_KEY=k\nOPENAI_BASE_URL=http://b/v1\n");
    for (args, server) in
        [(&["--env-file", "more.env", "--yes"][..], "http://b/v1"), (&[], "http://a/v1")]
    {
        place.environment.args = args.iter().map(Into::into).collect();
        let upstreams = Client::Aider.upstreams(&place.records(), &place.environment).unwrap();
        assert_eq!(upstreams, [(Family::OpenAi, server.to_owned())]);
        let launch = Client::Aider.launch(&Proxy::at(URL), &place.environment).unwrap();
        assert_eq!(
            (launch.args[0].to_str(), launch.args.len()),
            (Some("--env-file"), args.len().max(2))
        );
        let text = fs::read_to_string(&launch.args[1]).unwrap();
        assert!(text.contains(&format!("OPENAI_BASE_URL={URL}/v1\n")), "{text}");
        assert_eq!(text.contains("OPENAI_API_KEY=k"), !args.is_empty());
    }
}

#[test]
fn each_place_of_aiders_server_is_read_or_refused() {
    let mut place = Place::new();
    place.write("project/.git/HEAD", "");
    place.write("project/.aider.conf.yml", "openai-api-base: http://root/v1\n");
    place.write("given.yml", "openai-api-base: http://given/v1\n");
    place.write("project/deep/mine", "");
    place.environment.folder = place.environment.home.join("project/deep");
    let upstreams = |place: &Place| Client::Aider.upstreams(&place.records(), &place.environment);
    for (args, server) in [
        (&[][..], "http://root/v1"),
        (&["--config", "../../given.yml"], "http://given/v1"),
        (&["--openai-api-base", "http://flag/v1"], "http://flag/v1"),
    ] {
        place.environment.args = args.iter().map(Into::into).collect();
        assert_eq!(upstreams(&place).unwrap(), [(Family::OpenAi, server.to_owned())], "{args:?}");
    }
    for args in
        [&["--set-env", "A=1"][..], &["--openai-api-b=http://a"], &["--conf", "c"], &["-cc.yml"]]
    {
        place.environment.args = args.iter().map(Into::into).collect();
        assert_eq!(upstreams(&place).unwrap_err().kind(), ErrorKind::Capability, "{args:?}");
    }
    place.environment.args.clear();
    place.write("project/.env", "OPENAI_BASE_URL=http://root/v1\n");
    place.write("project/deep/.env", "OPENAI_BASE_URL=http://deep/v1\n");
    assert_eq!(upstreams(&place).unwrap(), [(Family::OpenAi, "http://root/v1".to_owned())]);
    place.write("project/.aider.conf.yml", "set-env:\n  - A=1\n");
    assert_eq!(upstreams(&place).unwrap_err().kind(), ErrorKind::Capability);
}

#[test]
fn providers_of_other_apis_keep_their_address() {
    let mut place = Place::new();
    let provider =
        |url: &str| json!({ "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": url } });
    let config = json!({ "model": "none/m", "provider": {
        "a": provider("http://a/v1"), "b": provider("http://b/v1"), "none": provider("{env:NONE}") } });
    place.write(".config/opencode/opencode.json", &config.to_string());
    place.environment.args = ["-m", "anthropic/claude"].map(Into::into).to_vec();
    assert_eq!(Client::Opencode.upstreams(&place.records(), &place.environment).unwrap(), []);
    place.environment.args.clear();
    assert_eq!(place.lost(Client::Opencode), []);
}
