// What waits for a person: holds of the gate with what each answer does and costs, holds of people, failures.
import { useAnswer } from "./api";
import { count, counted, plain } from "./format";
import { Answered, Command, DecidedList, Link, Outer, Text, Time } from "./parts";
import { pathOf, usePlace } from "./place";
import { AskAgain, Questions } from "./question";
import type { DecisionsAnswer, Waiting } from "./types";

export function Decisions() {
  const answer = useAnswer<DecisionsAnswer>("decisions");
  return (
    <Answered answer={answer} path="decisions">
      {({ flows, decided, of }) => (
        <>
          {flows.length ? flows.map((flow) => <OfFlow key={flow.dag_id} waiting={flow} />) : <p className="am-empty">Nothing waits for a decision in {counted(of, "flow")}.</p>}
          {decided.map((each) => (
            <section key={each.dag_id}>
              <h3 className="am-h"><Link to={`flow/${pathOf(each.dag_id)}`}>{each.flow}</Link>: decided, waits for the next run</h3>
              <DecidedList dagId={each.dag_id} decided={each.decided} />
            </section>
          ))}
        </>
      )}
    </Answered>
  );
}

function OfFlow({ waiting }: { waiting: Waiting }) {
  const to = (topic: string, partition: number) => (
    <Link to={`partition/${pathOf(waiting.dag_id)}`} query={{ topic, partition: String(partition) }}>
      {plain(topic)}-{partition}
    </Link>
  );
  return (
    <section>
      <h3 className="am-h"><Link to={`flow/${pathOf(waiting.dag_id)}`}>{waiting.flow}</Link></h3>
      {waiting.held.length > 0 && (
        <>
          <h4 className="am-h">The gate holds {counted(waiting.held_in_all, "partition")}; the others are copied</h4>
          <ul>
            {waiting.held.map((each) => (
              <li key={`${each.topic}-${each.partition}`}>
                {to(each.topic, each.partition)}: offsets {count(each.first)} to {count(each.last)}, {counted(each.records, "record")}, since <Time at={each.since_ms} />. <Text>{each.reason}</Text>
              </li>
            ))}
          </ul>
          <Questions waiting={waiting} option={(name, asked) => <About waiting={waiting} name={name} commands={asked?.commands[name]} />} otherwise={<Unasked waiting={waiting} />} />
          <p className="am-muted">
            Airflow has the question too, and its audit log who answered: <Outer to={waiting.required_actions}>required actions of {waiting.decide}</Outer>.
          </p>
        </>
      )}
      {waiting.held_by_people.length > 0 && (
        <>
          <h4 className="am-h">Held by people</h4>
          <ul>
            {waiting.held_by_people.map((each) => (
              <li key={`${each.topic}-${each.partition}`}>
                {to(each.topic, each.partition)}: {plain(each.by)} since <Time at={each.time_ms} />. <Text>{each.reason}</Text> Release it: <Command>{each.command}</Command>
              </li>
            ))}
          </ul>
        </>
      )}
      {waiting.failing.length > 0 && (
        <>
          <h4 className="am-h">Failing, and not by itself better</h4>
          <ul>
            {waiting.failing.map((each) => (
              <li key={`${each.topic}-${each.partition}`}>
                {each.topic ? to(each.topic, each.partition) : "Whole windows"}: {counted(each.windows, "window")} since <Time at={each.since_ms} />. <Text most={4_000}>{each.error}</Text>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

/** No question is open: what could be answered, and the way to be asked. */
function Unasked({ waiting }: { waiting: Waiting }) {
  return (
    <>
      <p>No question is open: it is asked once an incident. <AskAgain waiting={waiting} /></p>
      {waiting.ask && <Command>{waiting.ask}</Command>}
      <ul className="am-options">
        {waiting.options.map(({ name }) => <li key={name}><strong>{name}</strong><About waiting={waiting} name={name} /></li>)}
      </ul>
    </>
  );
}

/** What an answer does and costs, and the commands that do the same: a question's own, where one is open. */
function About({ waiting, name, commands }: { waiting: Waiting; name: string; commands?: string[] }) {
  const place = usePlace();
  const option = waiting.options.find((each) => each.name === name);
  if (!option) return null;
  const offered = commands ?? option.commands;
  const key = `${waiting.dag_id} ${name}`;
  const isOpen = place.query.get("answer") === key;
  return (
    <>
      {option.is_final && <span className="am-failing"> can't be undone</span>}
      <br />
      Does: {option.does}. Costs: {option.costs}.{" "}
      {offered.length > 0 && (
        <button type="button" aria-expanded={isOpen} onClick={() => place.set({ answer: isOpen ? undefined : key })}>
          {isOpen ? "hide the commands" : "the same by command"}
        </button>
      )}
      {isOpen && offered.map((command) => <Command key={command}>{command}</Command>)}
      {isOpen && offered.length > 0 && <p className="am-muted">Without <code>--yes</code> it is a dry run: it shows what would be done and writes nothing.</p>}
    </>
  );
}
