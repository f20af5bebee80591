// Reads JSON lines {"name", "text"} from standard input; for each prints what every parser makes of the text,
// in the fields that benchmarks/differential.py compares.
import readline from 'node:readline'
import feedParser from '@rowanmanning/feed-parser'
import { parseFeed as feedsmith } from 'feedsmith'
import RssParser from 'rss-parser'

const list = (value) => (Array.isArray(value) ? value : value == null ? [] : [value])
const text = (value) => (value instanceof Date ? value : value && typeof value === 'object' ? (value.value ?? value._ ?? null) : (value ?? null))
const iso = (value) => {
  const moment = new Date(text(value) ?? NaN)
  return Number.isNaN(moment.getTime()) ? null : moment.toISOString()
}
const alternate = (links) => {
  const found = list(links).find((each) => !each.rel || each.rel === 'alternate')
  return found?.href ?? null
}

function ofFeedsmith(document) {
  const { format, feed } = feedsmith(document)
  const atom = format === 'atom'
  const json = format === 'json'
  return {
    title: text(feed.title),
    link: atom ? alternate(feed.links) : json ? feed.home_page_url : (feed.link ?? alternate(feed.atom?.links)),
    language: feed.language ?? feed.dc?.languages?.[0] ?? feed.dc?.language ?? null,
    items: list(feed.items ?? feed.entries).map((item) => ({
      guid: text(item.guid) ?? item.id ?? item.rdf?.about ?? null,
      link: atom ? alternate(item.links) : json ? item.url : (item.link ?? alternate(item.atom?.links)),
      title: text(item.title),
      author: item.dc?.creators?.[0] ?? list(item.authors)[0]?.name ?? list(item.authors)[0]?.email ?? text(list(item.authors)[0]) ?? null,
      date: iso(item.pubDate ?? item.published ?? item.date_published ?? item.dc?.dates?.[0] ?? item.updated),
      content: item.content?.encoded ?? text(item.content) ?? item.content_html ?? item.content_text ?? text(item.description) ?? text(item.summary),
      enclosures: [
        ...list(item.enclosures).map((each) => each.url),
        ...(atom ? list(item.links).filter((each) => each.rel === 'enclosure').map((each) => each.href) : []),
        ...list(item.attachments).map((each) => each.url),
      ],
      categories: [...list(item.categories).map((each) => text(each?.name ?? each?.term ?? each)), ...list(item.tags), ...list(item.dc?.subjects)],
      images: [
        ...list(item.media?.thumbnails ?? item.media?.group?.thumbnails).map((each) => each.url).slice(0, 1),
        ...list(item.itunes?.image),
        ...list(item.image),
      ],
    })),
  }
}

function ofFeedParser(document) {
  const feed = feedParser.parseFeed(document)
  return {
    title: feed.title,
    link: feed.url,
    language: feed.language,
    items: feed.items.map((item) => ({
      guid: item.id,
      link: item.url,
      title: item.title,
      author: item.authors[0]?.name ?? item.authors[0]?.email ?? null,
      date: iso(item.published ?? item.updated),
      content: item.content ?? item.description,
      enclosures: item.media.map((each) => each.url),
      categories: item.categories.map((each) => each.term),
      images: list(item.image?.url),
    })),
  }
}

async function ofRssParser(document) {
  const feed = await new RssParser().parseString(document)
  return {
    title: text(feed.title),
    link: feed.link,
    language: feed.language,
    items: feed.items.map((item) => ({
      guid: text(item.guid ?? item.id),
      link: item.link,
      title: text(item.title),
      author: text(item.creator ?? item.author),
      date: iso(item.isoDate ?? item.pubDate),
      content: text(item['content:encoded'] ?? item.content ?? item.summary),
      enclosures: list(item.enclosure).map((each) => each.url),
      categories: list(item.categories).map((each) => each?.$?.term ?? text(each)),
      images: list(item.itunes?.image),
    })),
  }
}

const parsers = { feedsmith: ofFeedsmith, 'feed-parser': ofFeedParser, 'rss-parser': ofRssParser }

for await (const line of readline.createInterface({ input: process.stdin })) {
  const document = JSON.parse(line)
  for (const [parser, read] of Object.entries(parsers)) {
    let feed = null
    let error = null
    try {
      feed = await read(document.text)
    } catch (caught) {
      error = String(caught?.message ?? caught).slice(0, 200)
    }
    console.log(JSON.stringify({ name: document.name, parser, feed, error }))
  }
}
