//! Pipelines, their commands, and the operands in them.

use std::rc::Rc;

use super::{Parsed, Parser};
use crate::number;
use crate::template::lex::{Token, Type};
use crate::template::node::{Command, Kind, Node, Number, Pipe};
use crate::template::value::Value;

impl Parser<'_> {
    pub(super) fn pipeline(&mut self, context: &str, end: Type) -> Parsed<Pipe> {
        let mut pipe = Pipe {
            at: self.peek_non_space().at,
            assigns: false,
            variables: Vec::new(),
            commands: Vec::new(),
        };
        self.declarations(context, &mut pipe)?;
        loop {
            let token = self.next_non_space();
            match token.of {
                of if of == end => break,
                Type::Bool
                | Type::CharConstant
                | Type::Complex
                | Type::Dot
                | Type::Field
                | Type::Identifier
                | Type::Number
                | Type::Nil
                | Type::RawString
                | Type::String
                | Type::Variable
                | Type::LeftParen => {
                    self.pending.push(token);
                    pipe.commands.push(self.command()?);
                }
                _ => return self.unexpected(&token, context),
            }
        }
        if pipe.commands.is_empty() {
            return self.fail(&format!("missing value for {context}"));
        }
        for (index, command) in pipe.commands.iter().enumerate().skip(1) {
            let is_constant = matches!(
                command.words.first().map(|word| &word.kind),
                Some(Kind::Bool(_) | Kind::Dot | Kind::Nil | Kind::Number(_) | Kind::Str { .. })
            );
            if is_constant {
                let stage = index + 1;
                return self.fail(&format!("non executable command in pipeline stage {stage}"));
            }
        }
        Ok(pipe)
    }

    /// The variables that a pipeline declares or sets.
    fn declarations(&mut self, context: &str, pipe: &mut Pipe) -> Parsed<()> {
        loop {
            let variable = self.peek_non_space();
            if variable.of != Type::Variable {
                return Ok(());
            }
            self.next_non_space();
            let after = self.peek();
            let next = self.peek_non_space();
            let name: Rc<str> = Rc::from(variable.text.as_str());
            match next.of {
                Type::Assign | Type::Declare => {
                    pipe.assigns = next.of == Type::Assign;
                    self.next_non_space();
                    pipe.variables.push(Rc::clone(&name));
                    self.variables.push(name);
                    return Ok(());
                }
                Type::Char if next.text == "," => {
                    self.next_non_space();
                    pipe.variables.push(Rc::clone(&name));
                    self.variables.push(name);
                    if context == "range" && pipe.variables.len() < 2 {
                        if matches!(
                            self.peek_non_space().of,
                            Type::Variable | Type::RightDelim | Type::RightParen
                        ) {
                            continue;
                        }
                        return self.fail("range can only initialize variables");
                    }
                    return self.fail(&format!("too many declarations in {context}"));
                }
                _ => {
                    // What follows was peeked; a space in front of it matters to the command.
                    if after.of == Type::Space {
                        self.pending.push(after);
                    }
                    self.pending.push(variable);
                    return Ok(());
                }
            }
        }
    }

    fn command(&mut self) -> Parsed<Command> {
        let mut command = Command {
            at: self.peek_non_space().at,
            words: Vec::new(),
        };
        loop {
            self.peek_non_space();
            if let Some(word) = self.operand()? {
                command.words.push(word);
            }
            let token = self.next();
            match token.of {
                Type::Space => continue,
                Type::RightDelim | Type::RightParen => self.pending.push(token),
                Type::Pipe => {}
                _ => return self.unexpected(&token, "operand"),
            }
            break;
        }
        if command.words.is_empty() {
            return self.fail("empty command");
        }
        Ok(command)
    }

    fn operand(&mut self) -> Parsed<Option<Node>> {
        let Some(node) = self.term()? else {
            return Ok(None);
        };
        let first = self.peek();
        if first.of != Type::Field {
            return Ok(Some(node));
        }
        let at = first.at;
        let mut fields: Vec<Rc<str>> = Vec::new();
        while self.peek().of == Type::Field {
            fields.push(Rc::from(&self.next().text[1..]));
        }
        let kind = match node.kind {
            Kind::Field(mut words) => {
                words.extend(fields);
                Kind::Field(words)
            }
            Kind::Variable(mut words) => {
                words.extend(fields);
                Kind::Variable(words)
            }
            Kind::Bool(_) | Kind::Str { .. } | Kind::Number(_) | Kind::Nil | Kind::Dot => {
                let shown = crate::quote::quote(node.kind.to_string().as_bytes());
                return self.fail(&format!("unexpected . after term {shown}"));
            }
            _ => Kind::Chain(Box::new(node), fields),
        };
        Ok(Some(Node { at, kind }))
    }

    fn term(&mut self) -> Parsed<Option<Node>> {
        let token = self.next_non_space();
        let split = |text: &str| text.split('.').map(Rc::from).collect::<Vec<Rc<str>>>();
        let kind = match token.of {
            Type::Identifier => {
                if !(self.is_function)(&token.text) {
                    let name = crate::quote::quote(token.text.as_bytes());
                    return self.fail(&format!("function {name} not defined"));
                }
                Kind::Identifier(Rc::from(token.text))
            }
            Type::Dot => Kind::Dot,
            Type::Nil => Kind::Nil,
            Type::Variable => {
                let words = split(&token.text);
                let is_known = words
                    .first()
                    .is_some_and(|name| self.variables.contains(name));
                if !is_known {
                    let name = crate::quote::quote(token.text.as_bytes());
                    return self.fail(&format!("undefined variable {name}"));
                }
                Kind::Variable(words)
            }
            Type::Field => Kind::Field(split(&token.text[1..])),
            Type::Bool => Kind::Bool(token.text == "true"),
            Type::CharConstant | Type::Complex | Type::Number => match number(&token) {
                Ok(number) => Kind::Number(number),
                Err(why) => return self.fail(&why),
            },
            Type::LeftParen => {
                self.deeper()?;
                let pipe = self.pipeline("parenthesized pipeline", Type::RightParen)?;
                self.depth -= 1;
                return Ok(Some(Node {
                    at: pipe.at,
                    kind: Kind::Pipe(pipe),
                }));
            }
            Type::String | Type::RawString => Kind::Str {
                value: Value::str(self.unquoted(&token)?),
                quoted: token.text,
            },
            _ => {
                self.pending.push(token);
                return Ok(None);
            }
        };
        Ok(Some(Node { at: token.at, kind }))
    }
}

/// The number that a constant is, in every kind that can hold it.
fn number(token: &Token) -> Result<Number, String> {
    let text = &token.text;
    let shown = || crate::quote::quote(text.as_bytes());
    let mut found = Number {
        text: text.clone(),
        ..Number::default()
    };
    if token.of == Type::CharConstant {
        let Some(c) = crate::quote::unquote_rune(text) else {
            return Err(format!("malformed character constant: {text}"));
        };
        let code = u32::from(c);
        found.int = Some(i64::from(code));
        found.uint = Some(u64::from(code));
        found.float = Some(f64::from(code));
        return Ok(found);
    }
    if token.of == Type::Complex || text.ends_with('i') {
        found.complex = true;
        return Ok(found);
    }
    found.uint = number::parse_uint(text, 0);
    found.int = number::parse_int(text, 0);
    if found.int == Some(0) {
        found.uint = Some(0);
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "a constant is a float where one is wanted"
    )]
    match (found.int, found.uint) {
        (Some(int), _) => found.float = Some(int as f64),
        (None, Some(uint)) => found.float = Some(uint as f64),
        (None, None) => {
            if let Some(float) = number::parse_float(&text.replace('_', "")) {
                if !text.contains(['.', 'e', 'E', 'p', 'P']) {
                    return Err(format!("integer overflow: {}", shown()));
                }
                found.float = Some(float);
                #[expect(clippy::cast_possible_truncation, reason = "checked by the way back")]
                let int = float as i64;
                #[expect(clippy::float_cmp, reason = "whether it is the same number")]
                if int as f64 == float {
                    found.int = Some(int);
                    found.uint = u64::try_from(int).ok();
                }
            }
        }
    }
    if found.int.is_none() && found.uint.is_none() && found.float.is_none() {
        return Err(format!("illegal number syntax: {}", shown()));
    }
    Ok(found)
}
