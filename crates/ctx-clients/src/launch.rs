//! Points one process at the proxy, without a change to any file.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use ctx_core::Result;
use ctx_disk::io_error;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::files::read_text;
use crate::settings::base_url;
use crate::{Client, ConfigFile, Environment, Family, Format, Proxy, Scope, Setting, opencode};

/// How one process of a client is started.
#[derive(Debug, Default)]
pub struct Launch {
    /// Environment variables, which replace those of the parent.
    pub variables: Vec<(&'static str, OsString)>,
    /// All arguments after the program's name: those of the user, and others before them.
    pub args: Vec<OsString>,
    /// A folder with a file for the client. It is removed when this is dropped.
    pub folder: Option<TempDir>,
}

/// The commands of pi that send no requests, and know no extensions.
const PI_COMMANDS: [&str; 8] =
    ["install", "remove", "uninstall", "update", "list", "config", "auth", "help"];

impl Client {
    /// Returns what points one process of this client at the proxy.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the configuration of the client is malformed; `Capability` if it has nothing that
    /// can be pointed at the proxy; `Io` if the file for the client cannot be written.
    pub fn launch(self, proxy: &Proxy, environment: &Environment) -> Result<Launch> {
        let url = |family| base_url(self, family, proxy);
        let variables = self.variables().iter();
        let mut launch = Launch {
            variables: variables.map(|&(name, family)| (name, url(family).into())).collect(),
            args: environment.args.clone(),
            folder: None,
        };
        match self {
            Self::Claude => {
                if environment.variable("ENABLE_TOOL_SEARCH").is_none() {
                    launch.variables.push(("ENABLE_TOOL_SEARCH", "true".into()));
                }
                launch.claude(&url(Family::Anthropic), environment)?;
            }
            Self::Codex => {
                let files = self.base_url_files(&Scope::User, proxy, environment)?;
                for setting in files.into_iter().flat_map(|file| file.settings) {
                    launch.codex_setting(&setting);
                }
            }
            Self::Opencode => {
                let project = Scope::Project(environment.folder.clone());
                let mut content = environment.variable(opencode::INLINE).unwrap_or("{}").to_owned();
                let files = self.base_url_files(&project, proxy, environment)?;
                for setting in files.iter().flat_map(|file| &file.settings) {
                    content = Format::Json
                        .set(&content, &setting.key, Some(&setting.value))
                        .map_err(|error| error.with("variable", opencode::INLINE))?;
                }
                launch.variables = vec![(opencode::INLINE, content.into())];
            }
            Self::Pi => {
                let is_command = |arg: &OsString| PI_COMMANDS.iter().any(|command| arg == command);
                if !launch.args.first().is_some_and(is_command) {
                    let files = self.base_url_files(&Scope::User, proxy, environment)?;
                    let file = launch.write("ctx.js", &pi_extension(files))?;
                    launch.args.splice(0..0, ["-e".into(), file]);
                }
            }
            Self::Openclaw => {
                for file in self.base_url_files(&Scope::User, proxy, environment)? {
                    launch.openclaw(&file, environment)?;
                }
            }
            Self::Aider => launch.aider(environment)?,
            Self::Gemini | Self::Qwen | Self::Sdk => {}
        }
        Ok(launch)
    }

    /// Returns the environment variables with the address of a provider.
    pub(crate) fn variables(self) -> &'static [(&'static str, Family)] {
        match self {
            Self::Claude => &[("ANTHROPIC_BASE_URL", Family::Anthropic)],
            Self::Gemini => &[("GOOGLE_GEMINI_BASE_URL", Family::Gemini)],
            Self::Qwen => &[("OPENAI_BASE_URL", Family::OpenAi)],
            Self::Aider => {
                // The strongest first.
                &[
                    ("OPENAI_BASE_URL", Family::OpenAi),
                    ("AIDER_OPENAI_API_BASE", Family::OpenAi),
                    ("OPENAI_API_BASE", Family::OpenAi),
                    ("ANTHROPIC_API_BASE", Family::Anthropic),
                    ("ANTHROPIC_BASE_URL", Family::Anthropic),
                ]
            }
            Self::Sdk => &[
                ("OPENAI_BASE_URL", Family::OpenAi),
                ("OPENAI_API_BASE", Family::OpenAi),
                ("ANTHROPIC_BASE_URL", Family::Anthropic),
                ("GOOGLE_GEMINI_BASE_URL", Family::Gemini),
            ],
            Self::Codex | Self::Opencode | Self::Pi | Self::Openclaw => &[],
        }
    }
}

impl Launch {
    /// Writes a file that only this user can read, and returns its path.
    fn write(&mut self, name: &str, text: &str) -> Result<OsString> {
        let folder = tempfile::Builder::new().prefix("ctx-run-").tempdir();
        let folder =
            folder.map_err(|e| io_error("cannot create a folder", &std::env::temp_dir(), e))?;
        let path = folder.path().join(name);
        ctx_disk::write_atomic(&path, text.as_bytes())?;
        self.folder = Some(folder);
        Ok(path.into())
    }

    /// Gives Claude Code a settings file with the base URL and what the user's `--settings` has: files
    /// win over the environment, this flag wins over files, and the last such flag over the others.
    /// Arguments could be read by other users.
    fn claude(&mut self, url: &str, environment: &Environment) -> Result<()> {
        let given = environment.claude_settings()?;
        let text = given.as_ref().map_or("{}", |(_, text)| text);
        let key = ["env", "ANTHROPIC_BASE_URL"].map(str::to_owned);
        let settings = Format::Json.set(text, &key, Some(&url.into()));
        let settings = settings.map_err(|error| match &given {
            Some((source, _)) => error.with("settings", source),
            None => error,
        })?;
        let file = self.write("settings.json", &settings)?;
        self.flag("--settings", file);
        Ok(())
    }

    /// Gives Aider an environment file with the addresses, and with what the user's has: the file of
    /// this flag wins over others and over the environment.
    fn aider(&mut self, environment: &Environment) -> Result<()> {
        let given = environment.aider_env_file();
        let text = given.map(|path| read_text(&path)).transpose()?;
        let mut text = text.flatten().unwrap_or_default();
        for (name, url) in std::mem::take(&mut self.variables) {
            let url = url.to_string_lossy().into_owned().into();
            text = Format::DotEnv.set(&text, &[name.to_owned()], Some(&url))?;
        }
        let file = self.write("aider.env", &text)?;
        self.flag("--env-file", file);
        Ok(())
    }

    /// Sets a flag, in place of the last one of this name.
    fn flag(&mut self, name: &str, value: OsString) {
        let end = self.args.iter().position(|arg| arg == "--").unwrap_or(self.args.len());
        let prefix = format!("{name}=");
        let is_given = |arg: &OsString| {
            arg == name || arg.to_str().is_some_and(|arg| arg.starts_with(&prefix))
        };
        let range = match self.args[..end].iter().rposition(is_given) {
            Some(at) if self.args[at] == name => at..(at + 2).min(end),
            Some(at) => at..at + 1,
            None => 0..0,
        };
        self.args.splice(range, [name.into(), value]);
    }

    /// Adds a setting of Codex in place of the user's.
    fn codex_setting(&mut self, setting: &Setting) {
        let names = setting.key.iter().map(|name| toml_edit::Key::new(name).to_string());
        let key = names.collect::<Vec<_>>().join(".");
        let is_same = |arg: &OsString| {
            let (name, _) = arg.to_str().unwrap_or_default().split_once('=').unwrap_or_default();
            name.trim() == key
        };
        let end = self.args.iter().position(|arg| arg == "--").unwrap_or(self.args.len());
        // The last one wins.
        for at in (1..end).rev() {
            let is_flag = self.args[at - 1] == "-c" || self.args[at - 1] == "--config";
            if is_flag && is_same(&self.args[at]) {
                self.args.drain(at - 1..=at);
            }
        }
        // The value is TOML.
        let flag = format!("{key}={}", setting.value);
        self.args.splice(0..0, ["-c".into(), flag.into()]);
    }

    /// Gives OpenClaw a configuration that includes the user's, and only adds the addresses.
    fn openclaw(&mut self, file: &ConfigFile, environment: &Environment) -> Result<()> {
        let config = fs::canonicalize(&file.path)
            .map_err(|e| io_error("cannot read the configuration", &file.path, e))?;
        let mut text = json!({ "$include": config }).to_string();
        for setting in &file.settings {
            text = Format::Json.set(&text, &setting.key, Some(&setting.value))?;
        }
        let path = self.write("openclaw.json", &text)?;
        // Includes have to be below the folder of the configuration, or below one of these.
        const ROOTS: &str = "OPENCLAW_INCLUDE_ROOTS";
        let known = environment.variables.get(&OsString::from(ROOTS));
        let known = known.iter().flat_map(|roots| std::env::split_paths(roots));
        let roots = [ctx_disk::parent(&config), ctx_disk::parent(&file.path)].map(Path::to_owned);
        let roots = std::env::join_paths(roots.into_iter().chain(known)).unwrap_or_default();
        let state = environment.openclaw_state().into_os_string();
        self.variables =
            vec![("OPENCLAW_CONFIG_PATH", path), (ROOTS, roots), ("OPENCLAW_STATE_DIR", state)];
        Ok(())
    }
}

/// Returns an extension that sets the base URLs of pi's providers.
fn pi_extension(files: Vec<ConfigFile>) -> String {
    let settings = files.into_iter().flat_map(|file| file.settings);
    let urls = settings.filter_map(|set| Some((set.key.into_iter().nth(1)?, set.value)));
    let urls = Value::Object(urls.collect::<Map<_, _>>());
    format!(
        "const urls = {urls};\nexport default (pi) => {{\n  for (const name in urls) \
         pi.registerProvider(name, {{ baseUrl: urls[name] }});\n}};\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "http://127.0.0.1:1";

    fn launch(client: Client, environment: &Environment) -> Launch {
        client.launch(&Proxy::at(URL), environment).unwrap()
    }

    fn json_of(text: &OsString) -> Value {
        serde_json::from_str(text.to_str().unwrap()).unwrap()
    }

    #[test]
    fn the_inline_configuration_of_opencode_is_kept() {
        let mut environment = Environment::default();
        let inline = r#"{"model":"m","provider":{"openai":{"options":{"timeout":5}}}}"#;
        environment.variables.insert("OPENCODE_CONFIG_CONTENT".into(), inline.into());
        let content = json_of(&launch(Client::Opencode, &environment).variables[0].1);
        assert_eq!(content["model"], "m");
        let options = &content["provider"]["openai"]["options"];
        assert_eq!(options, &json!({ "timeout": 5, "baseURL": "http://127.0.0.1:1/v1" }));
    }

    #[test]
    fn choices_of_the_user_are_kept() {
        let mut environment = Environment::default();
        environment.variables.insert("ENABLE_TOOL_SEARCH".into(), "false".into());
        environment.args =
            ["-p", "--settings", r#"{"model":"m"}"#, "--", "hi"].map(Into::into).to_vec();
        let launch = launch(Client::Claude, &environment);
        assert_eq!(launch.variables, [("ANTHROPIC_BASE_URL", URL.into())]);
        let [_, flag, settings, dashes, prompt] = &launch.args[..] else { unreachable!() };
        assert_eq!((flag, dashes, prompt), (&"--settings".into(), &"--".into(), &"hi".into()));
        let merged = json!({ "model": "m", "env": { "ANTHROPIC_BASE_URL": URL } });
        let settings: Value = serde_json::from_slice(&fs::read(settings).unwrap()).unwrap();
        assert_eq!(settings, merged);
    }

    #[test]
    fn commands_of_pi_get_no_extension() {
        let args = |args: &[&str]| args.iter().map(OsString::from).collect::<Vec<_>>();
        let environment = Environment { args: args(&["list"]), ..Environment::default() };
        assert_eq!(launch(Client::Pi, &environment).args, args(&["list"]));
        let environment = Environment { args: args(&["-p", "list"]), ..Environment::default() };
        let started = launch(Client::Pi, &environment);
        assert_eq!(started.args[2..], args(&["-p", "list"]));
        assert_eq!(started.args[0], "-e");
        let file = std::path::PathBuf::from(&started.args[1]);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(r#""google":"http://127.0.0.1:1/v1beta""#), "{text}");
        drop(started);
        assert!(!file.exists());
    }
}
