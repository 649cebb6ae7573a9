CREATE TABLE public.adk_internal_metadata (
    key character varying(128) NOT NULL,
    value text NOT NULL
);
CREATE TABLE public.app_states (
    app_name character varying(128) NOT NULL,
    state jsonb NOT NULL,
    state_text text,
    update_time double precision NOT NULL,
    changes bigint NOT NULL
);
CREATE TABLE public.consumed (
    session bigint NOT NULL,
    key character varying(128) NOT NULL
);
CREATE TABLE public.events (
    id character varying(128) NOT NULL,
    app_name character varying(128) NOT NULL,
    user_id character varying(128) NOT NULL,
    session_id character varying(128) NOT NULL,
    seq bigint NOT NULL,
    invocation_id character varying(128) NOT NULL,
    "timestamp" double precision NOT NULL,
    event_data jsonb NOT NULL,
    event_text text
);
CREATE TABLE public.intents (
    place bigint NOT NULL,
    session bigint NOT NULL,
    run_id character varying(128) NOT NULL,
    key character varying(128) NOT NULL,
    attempt bigint NOT NULL,
    intent text NOT NULL,
    started double precision NOT NULL,
    finished double precision,
    outcome text
);
ALTER TABLE public.intents ALTER COLUMN place ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.intents_place_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.leases (
    session bigint NOT NULL,
    fence bigint NOT NULL,
    run_id text,
    owner text NOT NULL,
    since double precision NOT NULL,
    expires double precision NOT NULL
);
CREATE TABLE public.runs (
    place bigint NOT NULL,
    session bigint NOT NULL,
    run_id character varying(128) NOT NULL,
    version text NOT NULL,
    owner text NOT NULL,
    started double precision NOT NULL,
    outcome text
);
ALTER TABLE public.runs ALTER COLUMN place ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.runs_place_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.sessions (
    number bigint NOT NULL,
    app_name character varying(128) NOT NULL,
    user_id character varying(128) NOT NULL,
    id character varying(128) NOT NULL,
    state jsonb NOT NULL,
    state_text text,
    create_time double precision NOT NULL,
    update_time double precision NOT NULL,
    seq bigint NOT NULL
);
ALTER TABLE public.sessions ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.sessions_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.user_states (
    app_name character varying(128) NOT NULL,
    user_id character varying(128) NOT NULL,
    state jsonb NOT NULL,
    state_text text,
    update_time double precision NOT NULL,
    changes bigint NOT NULL
);
INSERT INTO public.adk_internal_metadata VALUES ('adk_nb_schema_version', '1');
INSERT INTO public.app_states VALUES ('app', '{"odd": {"": null, "a": {"b": "� é", "long name": 1}, "zulu": [100000000000000000000000, 0.0, 1000000000000000000000000000000, 0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000005]}, "motd": "hi"}', '{"motd":"hi","odd":{"zulu":[1e+23,-0.0,1000000000000000000000000000000,5e-324],"a":{"long name":1,"b":"\u0000 é"},"":null}}', 5.5, 2);
INSERT INTO public.consumed VALUES (2, 'yes');
INSERT INTO public.consumed VALUES (2, 'be1203b2367078bb4d56919f18edd207b41b3713ed9dbabde402319826b970bc0c83ba2a8ac1c098cc7d6826042c9aa5a729bc80338a9a9b3c38b2a8feca58fb');
INSERT INTO public.events VALUES ('e1', 'app', 'Zoë', 'kept', 1, 'whole', 5.5, '{"id": "e1", "author": "guide", "branch": "a.b", "output": {"": null, "a": {"b": "� é", "long name": 1}, "zulu": [100000000000000000000000, 0.0, 1000000000000000000000000000000, 0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000005]}, "actions": {"route": ["a", 1], "stateDelta": {"k": [1], "gone": {"__adk_deleted__": true}, "user:n": 2, "app:odd": {"": null, "a": {"b": "� é", "long name": 1}, "zulu": [100000000000000000000000, 0.0, 1000000000000000000000000000000, 0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000005]}}}, "content": {"role": "model", "parts": [{"functionCall": {"id": "c1", "args": {"": null, "a": {"b": "� é", "long name": 1}, "zulu": [100000000000000000000000, 0.0, 1000000000000000000000000000000, 0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000005]}, "name": "look"}}, {"functionResponse": {"id": "c1", "name": "look", "response": {"": null, "a": {"b": "� é", "long name": 1}, "zulu": [100000000000000000000000, 0.0, 1000000000000000000000000000000, 0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000005]}}}, {"inlineData": {"data": "_wA=", "mimeType": "image/png"}}]}, "timestamp": 5.5, "invocationId": "whole"}', '{"id":"e1","invocationId":"whole","author":"guide","actions":{"stateDelta":{"gone":{"__adk_deleted__":true},"k":[1],"user:n":2,"app:odd":{"zulu":[1e+23,-0.0,1000000000000000000000000000000,5e-324],"a":{"long name":1,"b":"\u0000 é"},"":null}},"route":["a",1]},"output":{"zulu":[1e+23,-0.0,1000000000000000000000000000000,5e-324],"a":{"long name":1,"b":"\u0000 é"},"":null},"branch":"a.b","timestamp":5.5,"content":{"parts":[{"functionCall":{"id":"c1","args":{"zulu":[1e+23,-0.0,1000000000000000000000000000000,5e-324],"a":{"long name":1,"b":"\u0000 é"},"":null},"name":"look"}},{"functionResponse":{"id":"c1","name":"look","response":{"zulu":[1e+23,-0.0,1000000000000000000000000000000,5e-324],"a":{"long name":1,"b":"\u0000 é"},"":null}}},{"inlineData":{"data":"_wA=","mimeType":"image/png"}}],"role":"model"}}');
INSERT INTO public.events VALUES ('e2', 'app', 'Zoë', 'kept', 2, '', -1, '{"id": "e2", "author": "user", "content": {"role": "user", "parts": [{"text": "earlier, says the clock"}]}, "timestamp": -1.0, "invocationId": ""}', NULL);
INSERT INTO public.intents OVERRIDING SYSTEM VALUE VALUES (1, 2, 'cut', 'e05e90b2dba92b8ff75a0f846395004d', 1, '{"branch":"team.clerk","kind":"tool","call_id":"c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000","name":"pay","effect":"once"}', 1795443932.5, 1795443933, '{"zulu": [1e+23, -0.0, 1000000000000000000000000000000, 5e-324], "a": {"long name": 1, "b": "\u0000 \u00e9"}, "": null}');
INSERT INTO public.intents OVERRIDING SYSTEM VALUE VALUES (2, 2, 'cut', 'e05e90b2dba92b8ff75a0f846395004d', 2, '{"branch":"team.clerk","kind":"tool","call_id":"c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000c\u0000","name":"pay","effect":"once"}', 1795443933.5, NULL, NULL);
INSERT INTO public.intents OVERRIDING SYSTEM VALUE VALUES (3, 2, 'cut', '45954c84950a489ad69b84727c2202e5', 1, '{"branch":"","kind":"model","call_id":"m","name":"","effect":"once"}', 1795443934, NULL, NULL);
INSERT INTO public.leases VALUES (2, 2, 'cut', 'process 2 on saturn (00000000)', 1795443932, 0);
INSERT INTO public.runs OVERRIDING SYSTEM VALUE VALUES (1, 2, 'whole', 'v1', 'process 1 on saturn', 1795443931.5, 'done');
INSERT INTO public.runs OVERRIDING SYSTEM VALUE VALUES (2, 2, 'cut', 'v2', 'process 2 on saturn (00000000)', 1795443932, NULL);
INSERT INTO public.sessions OVERRIDING SYSTEM VALUE VALUES (1, 'app', 'Zoë', 'other', '{}', NULL, 1795443930.5, 1795443930.5, 0);
INSERT INTO public.sessions OVERRIDING SYSTEM VALUE VALUES (2, 'app', 'Zoë', 'kept', '{"": null, "a": {"b": "� é", "long name": 1}, "k": [1], "zulu": [100000000000000000000000, 0.0, 1000000000000000000000000000000, 0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000005]}', '{"zulu":[1e+23,-0.0,1000000000000000000000000000000,5e-324],"a":{"long name":1,"b":"\u0000 é"},"":null,"k":[1]}', 1795443931, -1, 2);
INSERT INTO public.user_states VALUES ('app', 'Zoë', '{"n": 2, "odd": {"": null, "a": {"b": "� é", "long name": 1}, "zulu": [100000000000000000000000, 0.0, 1000000000000000000000000000000, 0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000005]}}', '{"n":2,"odd":{"zulu":[1e+23,-0.0,1000000000000000000000000000000,5e-324],"a":{"long name":1,"b":"\u0000 é"},"":null}}', 5.5, 3);
SELECT pg_catalog.setval('public.intents_place_seq', 3, true);
SELECT pg_catalog.setval('public.runs_place_seq', 2, true);
SELECT pg_catalog.setval('public.sessions_number_seq', 2, true);
ALTER TABLE ONLY public.adk_internal_metadata
    ADD CONSTRAINT adk_internal_metadata_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.app_states
    ADD CONSTRAINT app_states_pkey PRIMARY KEY (app_name);
ALTER TABLE ONLY public.consumed
    ADD CONSTRAINT consumed_pkey PRIMARY KEY (session, key);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_app_name_user_id_session_id_seq_key UNIQUE (app_name, user_id, session_id, seq);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (app_name, user_id, session_id, id);
ALTER TABLE ONLY public.intents
    ADD CONSTRAINT intents_pkey PRIMARY KEY (place);
ALTER TABLE ONLY public.intents
    ADD CONSTRAINT intents_session_key_attempt_key UNIQUE (session, key, attempt);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (session);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (place);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_session_run_id_key UNIQUE (session, run_id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_app_name_user_id_id_key UNIQUE (app_name, user_id, id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.user_states
    ADD CONSTRAINT user_states_pkey PRIMARY KEY (app_name, user_id);
CREATE INDEX events_by_time ON public.events USING btree (app_name, user_id, session_id, "timestamp" DESC, id DESC);
ALTER TABLE ONLY public.consumed
    ADD CONSTRAINT consumed_session_fkey FOREIGN KEY (session) REFERENCES public.sessions(number) ON DELETE CASCADE;
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_app_name_user_id_session_id_fkey FOREIGN KEY (app_name, user_id, session_id) REFERENCES public.sessions(app_name, user_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.intents
    ADD CONSTRAINT intents_session_fkey FOREIGN KEY (session) REFERENCES public.sessions(number) ON DELETE CASCADE;
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_session_fkey FOREIGN KEY (session) REFERENCES public.sessions(number) ON DELETE CASCADE;
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_session_fkey FOREIGN KEY (session) REFERENCES public.sessions(number) ON DELETE CASCADE;
