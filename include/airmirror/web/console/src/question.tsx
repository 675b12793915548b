// The open questions of `decide.…`, to be answered here: a form over Airflow's own API, which checks who may answer and writes
// down who did.
import { useState, type ReactNode } from "react";
import { AIRFLOW, send, useAnswer, type Answer } from "./api";
import { count, counted, plain } from "./format";
import { LogIn, Outer, Text, Time } from "./parts";
import { pathOf } from "./place";
import type { Asked, Question, QuestionsAnswer, Waiting } from "./types";

const OPEN = "hitlDetails?response_received=false&state=awaiting_input&state=deferred&order_by=-created_at&limit=20";
const MOST_REASON = 300;
const MOST_NAMED = 5;
const SETTLED_MS = 15_000; // after an answer: what Airflow lists as open later is asked again

type OptionOf = (name: string, asked?: Asked) => ReactNode;

/** Forms for the questions that are open; `otherwise` where there is none. */
export function Questions({ waiting, option, otherwise }: { waiting: Waiting; option: OptionOf; otherwise: ReactNode }) {
  const answer = useAnswer<QuestionsAnswer>(`${AIRFLOW}${pathOf("dags", waiting.decide, "dagRuns", "~")}/${OPEN}`);
  const [answered, setAnswered] = useState<Record<string, { chosen: string; at: number }>>({});
  const all = answer.data?.hitl_details ?? [];
  const open = all.filter((each) => {
    const before = answered[runOf(each)];
    return !before || (answer.at ?? 0) > before.at + SETTLED_MS;
  });
  const done = Object.entries(answered).filter(([run]) => !open.some((each) => runOf(each) === run));
  return (
    <>
      {answer.problem && <Refused answer={answer} />}
      {done.map(([run, { chosen }]) => (
        <p key={run} role="status">
          Answered: <strong>{plain(chosen)}</strong>. It is carried out now by <Outer to={pathOf("dags", waiting.decide, "runs", run)}>the run that asked</Outer>; this page shows when it is done.
        </p>
      ))}
      {open.map((each) => (
        <Form key={runOf(each)} question={each} waiting={waiting} option={option} onAnswered={(chosen) => setAnswered((before) => ({ ...before, [runOf(each)]: { chosen, at: Date.now() } }))} />
      ))}
      {open.length === 0 && done.length === 0 && (answer.data || answer.problem) && otherwise}
    </>
  );
}

const runOf = (question: Question): string => question.task_instance.dag_run_id;

function Form({ question, waiting, option, onAnswered }: { question: Question; waiting: Waiting; option: OptionOf; onAnswered: (chosen: string) => void }) {
  const task = `${AIRFLOW}${pathOf("dags", waiting.decide, "dagRuns", runOf(question), "taskInstances", question.task_instance.task_id)}`;
  const asked = waiting.asked[runOf(question)];
  const [chosen, setChosen] = useState("");
  const [reason, setReason] = useState("");
  const [refused, setRefused] = useState<Answer<unknown>>();
  const [isSending, setSending] = useState(false);
  const answer = async () => {
    setSending(true);
    const sent = await send("PATCH", `${task}/-1/hitlDetails`, { chosen_options: [chosen], params_input: { reason } });
    setSending(false);
    if (sent.problem) setRefused(sent);
    else onAnswered(chosen);
  };
  const isFinal = waiting.options.some((each) => each.name === chosen && each.is_final);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (chosen && !isSending) void answer();
      }}
    >
      <fieldset>
        <legend>What becomes of it? Asked <Time at={Date.parse(question.created_at)} /></legend>
        {asked && <About asked={asked} />}
        <ul className="am-options">
          {question.options.map((name) => (
            <li key={name}>
              <label>
                <input type="radio" name={`answer ${runOf(question)}`} value={name} checked={chosen === name} onChange={() => setChosen(name)} /> <strong>{plain(name)}</strong>
              </label>
              {option(name, asked)}
            </li>
          ))}
        </ul>
        <label className="am-find">
          Reason, for those who find it later <input value={reason} maxLength={MOST_REASON} size={40} onChange={(event) => setReason(event.target.value)} />
        </label>{" "}
        <button type="submit" disabled={!chosen || isSending} className="am-do">
          {isSending ? "Sending…" : chosen ? `Answer: ${plain(chosen)}${isFinal ? ", which can't be undone" : ""}` : "Answer"}
        </button>
        {refused && <Refused answer={refused} />}
      </fieldset>
    </form>
  );
}

/** What a question is about, and whether that is still held: an answer counts for nothing else. */
function About({ asked: { about, is_held } }: { asked: Asked }) {
  const named = about.slice(0, MOST_NAMED).map(([topic, partition, last]) => `${plain(String(topic))}-${partition} up to offset ${count(last)}`);
  return (
    <p>
      For {counted(about.length, "partition")}: {named.join(", ")}
      {about.length > MOST_NAMED && `, and ${about.length - MOST_NAMED} more`}.
      {!is_held && <strong> None of it is held at these offsets any more: the answer will change nothing.</strong>}
    </p>
  );
}

const REFUSED = {
  login: "Your session has ended.",
  forbidden: "Airflow does not let you answer this.",
  missing: "Airflow has no such question any more.",
  busy: "Not now.",
  new: "Airflow can't answer now.",
  ledger: "Airflow can't answer now.",
  unreachable: "Airflow did not take it.",
};

export function Refused({ answer }: { answer: Answer<unknown> }) {
  const { problem } = answer;
  if (!problem) return null;
  return (
    <p role="alert" className="am-problem" data-kind={problem.kind}>
      {REFUSED[problem.kind]} {problem.kind === "login" ? <LogIn /> : <Text>{problem.text}</Text>}
    </p>
  );
}

/** Asks again about everything that is held: a run of `decide.…` by hand, as the command does. */
export function AskAgain({ waiting }: { waiting: Waiting }) {
  const [answer, setAnswer] = useState<Answer<{ dag_run_id: string }>>();
  const ask = async () => setAnswer(await send("POST", `${AIRFLOW}${pathOf("dags", waiting.decide, "dagRuns")}`, { logical_date: null, conf: {} }));
  return (
    <>
      <button type="button" onClick={() => void ask()}>Ask now about all of it</button>
      {answer?.data && <span role="status"> Asked: the question comes up here when the run has read what is held.</span>}
      {answer && <Refused answer={answer} />}
    </>
  );
}
